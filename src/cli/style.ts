/** Colours, and none of them where they would be noise. */

export type Paint = (text: string) => string;

/** The few styles in use; each is the identity where colour is off. */
export interface Style {
  dim: Paint;
  bold: Paint;
  red: Paint;
  yellow: Paint;
}

function paint(open: number, close: number): Paint {
  return (text) => text === "" ? "" : `\x1b[${open}m${text}\x1b[${close}m`;
}

const same: Paint = (text) => text;
const PLAIN: Style = { dim: same, bold: same, red: same, yellow: same };
const COLOURED: Style = {
  dim: paint(2, 22),
  bold: paint(1, 22),
  red: paint(31, 39),
  yellow: paint(33, 39),
};

/** Colour only on a terminal that can, and without `NO_COLOR` (any value but the empty one). */
export function styleFor(isTerminal: boolean, env: { [name: string]: string }): Style {
  const off = (env["NO_COLOR"] ?? "") !== "" || env["TERM"] === "dumb";
  return isTerminal && !off ? COLOURED : PLAIN;
}
