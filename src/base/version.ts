/** The version of rnix: shown by `rnix version`, written into every journal. A test holds it to the one in `deno.json`. */
export const VERSION = "0.1.0";
