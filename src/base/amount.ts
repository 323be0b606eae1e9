/** Numbers as people read them. */

/** `1,234`, for whole numbers. Without the tables of locales, whose loading takes longer than a list of runs. */
export function count(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}
