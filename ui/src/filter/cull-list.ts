/** A list of frames to be culled, as `heapr report --cull-lists` reads it: one a line; empty lines and those that begin with # say nothing. */

/** More do not fit an address. */
export const PATTERNS_MAX = 200;

export function patternsOf(text: string): string[] {
  const lines = text.split('\n').map((line) => line.trim());
  return [...new Set(lines.filter((line) => line !== '' && !line.startsWith('#')))];
}
