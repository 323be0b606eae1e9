/** What rnix itself tells a model: it stands in the place of a user, who has said nothing of it. */

/** Begins every note. */
const NOTE_MARK = "[rnix]";

/** The text of a message that tells `text`. */
export function noteOf(text: string): string {
  return `${NOTE_MARK} ${text}`;
}

/** Whether a message in the user's place is rnix's own. */
export function isNote(message: string): boolean {
  return message.startsWith(NOTE_MARK);
}
