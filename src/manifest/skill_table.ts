/**
 * The skills that a manifest may name: folders with a `SKILL.md` in the project's `.rnix/skills`, then its `.agents/skills`, then those of the user.
 *
 * Finding them reads no file; a skill is read when a manifest names it. A skill of the project decides what an agent is told and which tools it has, so it needs consent (`trust.ts`), over its text and all the files beside it.
 */
import { basename, join } from "node:path";
import { SysError } from "../base/errors.ts";
import { sha256Hex } from "../base/json.ts";
import { nearest } from "../base/nearest.ts";
import { shownFrom } from "../base/paths.ts";
import type { Storage } from "../base/storage.ts";
import { exists, namesIn } from "./folder_names.ts";
import type { Problems } from "./problems.ts";
import { findProjectFolder, type ProjectFile, type ProjectSearch } from "./project_folder.ts";
import type { Skill } from "./skill.ts";
import { isSkillName, parseSkill } from "./skill_file.ts";
import { MANIFEST_BYTES_MAX, readSourceText } from "./source_text.ts";

export const SKILL_FILE = "SKILL.md";
const SKILLS_FOLDER = "skills";
/** A project's folder for agents of any program. */
const AGENTS_FOLDER = ".agents";
/** Files beside a `SKILL.md` that its agent can read. */
const FILES_MAX = 200;
const FOLDERS_DEPTH_MAX = 4;

/** A skill that was read, and what comes with it. */
export interface ReadSkill {
  skill: Skill;
  /** What a user should know of it, a sentence each. */
  notices: string[];
  /** Of one of the project: its `SKILL.md` and all that it can read beside it. */
  projectFiles: ProjectFile[];
}

/** A skill that can be named. */
export interface KnownSkill {
  name: string;
  scope: "project" | "user";
  /** Absolute. */
  folder: string;
}

/** Where skills may be. */
export interface SkillPlaces extends ProjectSearch {
  /** Folder of the user's configuration (`RnixPaths.config`). */
  config: string;
}

/** All skills that can be named. */
export class SkillTable {
  readonly #entries: ReadonlyMap<string, KnownSkill>;
  readonly #places: Pick<SkillPlaces, "storage" | "cwd"> | undefined;
  readonly #lookedInto: readonly string[];

  /** The first of each name wins. */
  constructor(
    entries: readonly KnownSkill[] = [],
    places?: Pick<SkillPlaces, "storage" | "cwd">,
    lookedInto: readonly string[] = [],
  ) {
    this.#entries = new Map(entries.toReversed().map((entry) => [entry.name, entry]));
    this.#places = places;
    this.#lookedInto = lookedInto;
  }

  get all(): KnownSkill[] {
    return [...this.#entries.values()].toSorted((a, b) => a.name < b.name ? -1 : 1);
  }

  /** What is wrong with a name; undefined for a known one. */
  faultOf(name: string): string | undefined {
    if (this.#entries.has(name)) return undefined;
    const names = this.all.map((skill) => skill.name);
    const near = nearest(name, names);
    const known = names.length === 0
      ? "there are none"
      : `there are ${names.map((each) => `"${each}"`).join(", ")}`;
    const looked = this.#lookedInto.length === 0
      ? ""
      : ` (looked into ${this.#lookedInto.join(", ")})`;
    return `Unknown skill "${name}"${looked}; ${
      near === undefined ? known : `did you mean "${near}"?`
    }`;
  }

  /** Reads a skill. Its mistakes go to `problems`; then, and for an unknown name, nothing is given. */
  async read(name: string, problems: Problems): Promise<ReadSkill | undefined> {
    const known = this.#entries.get(name);
    if (known === undefined || this.#places === undefined) return undefined;
    const { storage, cwd } = this.#places;
    const path = join(known.folder, SKILL_FILE);
    const file = shownFrom(cwd, path);
    const source = await readSourceText(storage, path, MANIFEST_BYTES_MAX);
    if (source.kind !== "text") {
      const message = source.kind === "absent" ? "The file is gone" : source.message;
      const position = source.kind === "absent" ? { line: 1, column: 1 } : source.position;
      problems.add(file, position, message);
      return undefined;
    }
    const parsed = parseSkill(source.text, { file, folderName: basename(known.folder) }, problems);
    if (parsed === undefined) return undefined;
    const { notices, ...told } = parsed;
    const beside = await filesBeside(storage, known.folder);
    const skill: Skill = { ...told, folder: known.folder, files: beside.files };
    const more = beside.isCut
      ? [`Skill "${name}": of the files beside it only the first ${FILES_MAX} can be read`]
      : [];
    return {
      skill,
      notices: [...notices, ...more],
      projectFiles: known.scope === "user" ? [] : filesOf(path, source.text, skill),
    };
  }
}

/** Without any folder. */
export const NO_SKILLS = new SkillTable();

/** All skills that can be named from a folder. */
export async function findSkills(places: SkillPlaces): Promise<SkillTable> {
  const { storage, cwd, config } = places;
  const found: KnownSkill[] = [];
  const lookedInto: string[] = [];
  const look = async (folder: string, scope: KnownSkill["scope"]) => {
    lookedInto.push(shownFrom(cwd, folder));
    for (const name of await foldersIn(storage, folder)) {
      const path = join(folder, name);
      if (isSkillName(name) && await exists(storage, join(path, SKILL_FILE))) {
        found.push({ name, scope, folder: path });
      }
    }
  };
  for (const name of [undefined, AGENTS_FOLDER]) {
    const project = await findProjectFolder(places, name);
    if (project?.refused !== undefined) {
      lookedInto.push(`nothing of the project: ${project.refused}`);
    } else if (project !== undefined) await look(join(project.path, SKILLS_FOLDER), "project");
  }
  await look(join(config, SKILLS_FOLDER), "user");
  return new SkillTable(found, { storage, cwd }, lookedInto);
}

async function foldersIn(storage: Storage, folder: string): Promise<string[]> {
  try {
    return await namesIn(storage, folder);
  } catch (thrown) {
    // A file of that name, or a folder that can't be listed, holds no skills.
    if (thrown instanceof SysError) return [];
    throw thrown;
  }
}

function filesOf(path: string, text: string, skill: Skill): ProjectFile[] {
  const tools = skill.tools.length === 0 ? [] : [`grants ${skill.tools.join(", ")}`];
  const effects = [`${skill.name}: ${skill.description}`, ...tools];
  return [
    { name: SKILL_FILE, path, contentHash: sha256Hex(text), effects },
    ...Object.entries(skill.files).map(([beside, contentHash]): ProjectFile => ({
      name: SKILL_FILE,
      path: join(skill.folder, beside),
      contentHash,
      effects: [],
    })),
  ];
}

/** Text files beside a `SKILL.md`, links and hidden ones aside. */
async function filesBeside(
  storage: Storage,
  folder: string,
): Promise<{ files: { [path: string]: string }; isCut: boolean }> {
  const files: { [path: string]: string } = {};
  let count = 0;
  const walk = async (inside: string, depth: number): Promise<void> => {
    for (const name of await foldersIn(storage, join(folder, inside))) {
      if (name.startsWith(".") || name === "node_modules" || name === "__proto__") continue;
      const path = inside === "" ? name : `${inside}/${name}`;
      const facts = await storage.stat(join(folder, path)).catch(() => undefined);
      if (facts?.kind === "folder" && depth < FOLDERS_DEPTH_MAX) await walk(path, depth + 1);
      if (facts?.kind !== "file" || path === SKILL_FILE) continue;
      if (count >= FILES_MAX) {
        count += 1;
        return;
      }
      const source = await readSourceText(storage, join(folder, path));
      if (source.kind !== "text") continue;
      count += 1;
      files[path] = sha256Hex(source.text);
    }
  };
  await walk("", 0);
  return { files, isCut: count > FILES_MAX };
}
