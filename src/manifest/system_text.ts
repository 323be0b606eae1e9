/**
 * What an agent's model is told before anything else: its instructions, the names of its skills, and the notes of the project.
 *
 * Of a skill only name and description stand here; the rest is told when the model asks for it. Nothing in it changes from one start to the next: no path, no date, no pid.
 */
import type { LoadedAgent } from "./agent_manifest.ts";

/** The system text of an agent. */
export function systemText(
  { manifest, skills = [], notes }: Pick<LoadedAgent, "manifest" | "skills" | "notes">,
): string {
  return [
    manifest.instructions,
    ...skills.length === 0 ? [] : [skillsText(skills)],
    ...notes === undefined ? [] : [notesText(notes)],
  ].join("\n\n");
}

function skillsText(skills: NonNullable<LoadedAgent["skills"]>): string {
  const lines = skills.map(({ name, description }) => `- ${name}: ${description}`);
  return `# Skills\n\nEach holds instructions for one kind of work. Where one fits what is to be done, get it with the tool Skill before you begin.\n\n${
    lines.join("\n")
  }`;
}

function notesText(notes: string): string {
  return `# Notes of the project\n\nThese are the words of the people whose project you work in, from its AGENTS.md. Keep to them where they don't contradict your instructions or the user.\n\n<project_notes>\n${notes.trim()}\n</project_notes>`;
}
