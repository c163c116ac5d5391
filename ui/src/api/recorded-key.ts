/** What a recorded answer is found by: the server writes the same keys (crates/server/src/static_page/key.rs). */

/** What does not change an answer but only how much of it is sent. */
const AMOUNT_FIELDS = new Set(['offset', 'limit', 'bins', 'series_max', 'frames_max', 'nodes_max', 'least_share', 'source_lines', 'from_ns', 'to_ns', 'descending', 'top', 'same']);

/**
 * The key of a recorded answer: the path, and the body as JSON with its fields in order, without those that only say how much is asked
 * for and without what is null, empty or false.
 */
export function recordedKey(path: string, body?: unknown): string {
  const fields = essential(body);
  return fields === undefined ? path : `${path} ${JSON.stringify(fields)}`;
}

function essential(value: unknown): unknown {
  if (value === null || value === '' || value === false || value === undefined) return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value;
  if (typeof value !== 'object') return value;
  const entries = Object.entries(value).filter(([name]) => !AMOUNT_FIELDS.has(name)).map(([name, field]) => [name, essential(field)] as const);
  const kept = entries.filter(([, field]) => field !== undefined).sort(([a], [b]) => (a < b ? -1 : 1));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
