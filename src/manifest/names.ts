/** Shapes of names in a manifest. */

const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/;

/** What a name of an agent or a server looks like, for error messages. */
export const NAME_RULE = "lower-case letters, digits and -, at most 64, not beginning with -";

/** Whether a text can be the name of an agent or a server. */
export function isName(text: string): boolean {
  return NAME.test(text);
}

/** Whether a text can be the name of an HTTP header. */
export function isHeaderName(text: string): boolean {
  return /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(text) && text !== "__proto__";
}

/** What the manifest in an agent's folder is called. */
export const MANIFEST_FILE = "agent.yaml";
