/** Breaks text into lines that fit a terminal of 80 columns, between words. */

/** Columns that every terminal has. */
export const HELP_COLUMNS = 80;

/** Lines of at most `columns`, all but the first begun with `indent`; a word that is longer stands alone. */
export function wrapped(text: string, columns: number, indent = ""): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line.trim() === "" || longer.length <= columns) {
      line = longer;
      continue;
    }
    lines.push(line);
    line = indent + word;
  }
  return [...lines, line];
}

/** Paragraphs anew; lines that begin with a blank stay as they are. */
export function rewrapped(text: string, columns: number): string {
  const lines: string[] = [];
  let paragraph: string[] = [];
  const endParagraph = () => {
    if (paragraph.length > 0) lines.push(...wrapped(paragraph.join(" "), columns));
    paragraph = [];
  };
  for (const line of text.split("\n")) {
    if (line !== "" && !line.startsWith(" ")) {
      paragraph.push(line);
      continue;
    }
    endParagraph();
    lines.push(line);
  }
  endParagraph();
  return lines.join("\n");
}
