/** Text of a table without rows: a search that found nothing is not the same as nothing to search. */

/** Returns the text for a table that is searched for `match`; `otherwise` is that without a search. */
export function emptyText(match: string, otherwise: string): string {
  return match === '' ? otherwise : `Nothing here matches “${match}”.`;
}
