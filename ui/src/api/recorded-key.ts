/**
 * Keys of recorded answers; the server writes the same ones (crates/server/src/static_page/key.rs).
 */

/** Fields of a request that change only how much of the answer is sent. */
const AMOUNT_FIELDS = new Set(['offset', 'limit', 'bins', 'series_max', 'frames_max', 'nodes_max', 'least_share', 'source_lines', 'from_ns', 'to_ns', 'descending', 'top', 'same']);

/**
 * Returns the key of a recorded answer: the path, and the body as JSON with sorted fields. Fields
 * for the amount, and values that are null, empty or false, are left out.
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
