/**
 * House rules that need one file at a time; whole-tree rules are in `tidy.ts`.
 *
 * Import direction (design of the folders, dynamic and type imports included), function length, printing only in the command line, ending the
 * process only in `main.ts`, and no reaching for time, randomness or environment in the folders that must be handed them.
 */
import { CONTRACT_FILES, MAY_IMPORT, PURE_FOLDERS, TYPES_ONLY } from "./layers.ts";

const FUNCTION_LINES_MAX = 70;

type Source = Deno.lint.Node | null | undefined;

/** Folder of `src` a path lies in; undefined outside of `src`. */
function folderOf(path: string): string | undefined {
  return path.replaceAll("\\", "/").match(/(?:^|\/)src\/([^/]+)\//)?.[1];
}

function isTest(path: string): boolean {
  return path.endsWith("_test.ts");
}

/** The literal text of an import's source, or undefined where it is computed. */
function literalOf(source: Source): string | undefined {
  if (source?.type === "TSLiteralType") return literalOf(source.literal);
  return source?.type === "Literal" && typeof source.value === "string" ? source.value : undefined;
}

/** What is wrong with `file` importing `specifier`, or undefined. */
function importFault(file: string, specifier: string, typesOnly: boolean): string | undefined {
  const from = folderOf(file);
  if (from === undefined || !specifier.startsWith(".")) return undefined;
  const target = new URL(specifier, `file://${file}`).pathname;
  const to = folderOf(target);
  if (to === undefined) {
    return /\/agents\//.test(target) ? undefined : `src/${from} may not import "${specifier}"`;
  }
  if (to === from) return undefined;
  if (!MAY_IMPORT[from]?.includes(to)) return `src/${from} may not import src/${to}`;
  const wantsTypes = TYPES_ONLY.some(([a, b]) => a === from && b === to) &&
    !CONTRACT_FILES.some((each) => target.endsWith(`/${each}`));
  return wantsTypes && !typesOnly ? `src/${from} may import only types of src/${to}` : undefined;
}

const importDirection: Deno.lint.Rule = {
  create(context) {
    const from = folderOf(context.filename);
    if (from === undefined || isTest(context.filename)) return {};
    const check = (node: Deno.lint.Node, source: Source, typesOnly: boolean) => {
      if (!source) return;
      const specifier = literalOf(source);
      const message = specifier === undefined
        ? "An import must name its file in a literal"
        : importFault(context.filename, specifier, typesOnly);
      if (message === undefined) return;
      const hint = `src/${from} may import: ${MAY_IMPORT[from]?.join(", ") || "nothing"}`;
      context.report({ node, message, hint });
    };
    return {
      ImportDeclaration: (node) =>
        check(node, node.source, node.importKind === "type" || allTypes(node.specifiers)),
      ExportNamedDeclaration: (node) => check(node, node.source, node.exportKind === "type"),
      ExportAllDeclaration: (node) => check(node, node.source, node.exportKind === "type"),
      ImportExpression: (node) => check(node, node.source, false),
      TSImportType: (node) => check(node, node.argument, true),
    };
  },
};

function allTypes(specifiers: Deno.lint.ImportDeclaration["specifiers"]): boolean {
  return specifiers.length > 0 &&
    specifiers.every((each) => each.type === "ImportSpecifier" && each.importKind === "type");
}

const functionLength: Deno.lint.Rule = {
  create(context) {
    const check = (node: Deno.lint.Node) => {
      const lines = context.sourceCode.getText(node).split("\n").length;
      if (lines <= FUNCTION_LINES_MAX) return;
      context.report({
        node,
        message: `Function has ${lines} lines, at most ${FUNCTION_LINES_MAX} are allowed`,
      });
    };
    return {
      FunctionDeclaration: check,
      FunctionExpression: check,
      ArrowFunctionExpression: check,
    };
  },
};

/** `a.b` as text where both are plain names. */
function memberName(node: Deno.lint.MemberExpression): string | undefined {
  const { object, property } = node;
  if (object.type !== "Identifier" || property.type !== "Identifier" || node.computed) {
    return undefined;
  }
  return `${object.name}.${property.name}`;
}

const PRINTING = /^(console\.\w+|(Deno|process)\.(stdout|stderr))$/;

const printOnlyInCli: Deno.lint.Rule = {
  create(context) {
    const folder = folderOf(context.filename);
    if (folder === undefined || folder === "cli" || isTest(context.filename)) return {};
    return {
      MemberExpression(node) {
        if (!PRINTING.test(memberName(node) ?? "")) return;
        context.report({
          node,
          message: `src/${folder} may not print`,
          hint: "Report an event or throw a SysError",
        });
      },
    };
  },
};

const ENDING = /^((Deno|process)\.exit|Deno\.exitCode|process\.exitCode)$/;

const exitOnlyInMain: Deno.lint.Rule = {
  create(context) {
    if (folderOf(context.filename) === undefined) return {};
    return {
      MemberExpression(node) {
        if (!ENDING.test(memberName(node) ?? "")) return;
        context.report({ node, message: "Only main.ts may end the process" });
      },
    };
  },
};

const REACHING = /^(Date\.now|performance\.now|Math\.random|crypto\.\w+|Deno\.env|process\.env)$/;
const TIMERS = ["setTimeout", "setInterval"];

const handedIn: Deno.lint.Rule = {
  create(context) {
    const folder = folderOf(context.filename);
    if (folder === undefined || !PURE_FOLDERS.includes(folder) || isTest(context.filename)) {
      return {};
    }
    const report = (node: Deno.lint.Node, name: string) =>
      context.report({
        node,
        message: `src/${folder} may not reach for ${name}`,
        hint: "Take a Clock, a RandomSource or the environment as a parameter",
      });
    return {
      MemberExpression(node) {
        const name = memberName(node) ?? "";
        if (REACHING.test(name)) report(node, name);
      },
      CallExpression(node) {
        const { callee } = node;
        if (callee.type === "Identifier" && TIMERS.includes(callee.name)) {
          report(node, callee.name);
        }
      },
      NewExpression(node) {
        const { callee } = node;
        if (callee.type === "Identifier" && callee.name === "Date" && node.arguments.length === 0) {
          report(node, "new Date()");
        }
      },
    };
  },
};

const plugin: Deno.lint.Plugin = {
  name: "rnix",
  rules: {
    "import-direction": importDirection,
    "function-length": functionLength,
    "print-only-in-cli": printOnlyInCli,
    "exit-only-in-main": exitOnlyInMain,
    "handed-in": handedIn,
  },
};

export default plugin;
