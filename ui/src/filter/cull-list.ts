/**
 * Parses a list of frames to be culled, in the form of `heapr report --cull-lists`: one a line,
 * with empty lines and lines after # ignored.
 */

/** Most patterns that fit an address. */
export const PATTERNS_MAX = 200;

export function patternsOf(text: string): string[] {
  const lines = text.split('\n').map((line) => line.trim());
  return [...new Set(lines.filter((line) => line !== '' && !line.startsWith('#')))];
}
