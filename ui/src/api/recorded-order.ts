/**
 * Orders of the server's tables, for rows that were recorded in another one; docs/api.md has the
 * names.
 */

import { METRICS } from './metrics';

/** Row of any kind. */
export type Row = Record<string, unknown>;
type Order = (one: Row, other: Row) => number;

const SORTS: Record<string, string> = Object.fromEntries(METRICS.filter(({ key }) => key !== '').map(({ key, name }) => [key, name]));

const greatest = (value: (row: Row) => number): Order => (one, other) => value(other) - value(one);
const least = (value: (row: Row) => number): Order => (one, other) => value(one) - value(other);
const byText = (value: (row: Row) => string): Order => (one, other) => (value(one) < value(other) ? -1 : value(one) > value(other) ? 1 : 0);
const number = (field: string) => (row: Row) => Number(row[field] ?? 0);

const HEAP: Record<string, Order> = {
  retained: greatest(number('retained_bytes')), shallow: greatest(number('shallow_bytes')), distance: least(number('distance')),
  count: greatest(number('object_count')), id: least(number('id')), name: byText((row) => String(row['name'] ?? row['class'] ?? '')),
};

const ORDERS: Record<string, Record<string, Order>> = {
  '/api/snapshot/summary': HEAP,
  '/api/snapshot/objects': { ...HEAP, count: least(number('id')) },
  '/api/leaks': {
    bytes: greatest(number('outstanding_bytes')), count: greatest(number('outstanding_count')), mean_age: greatest(number('mean_age_ns')), oldest: least(number('oldest_ns')),
    newest: greatest(number('newest_ns')), unfreed: greatest((row) => number('outstanding_count')(row) / Math.max(1, number('total_count')(row))),
  },
  '/api/native/summary': {
    bytes: greatest(number('block_bytes')), count: greatest(number('block_count')), oldest: greatest(number('oldest_ns')), youngest: least(number('youngest_ns')),
  },
  '/api/native/diff': {
    change: greatest((row) => Math.abs(number('bytes_delta')(row))), growth: greatest(number('bytes_delta')), new: greatest(number('new_bytes')), gone: greatest(number('gone_bytes')),
  },
  '/api/native/suspects': { rate: greatest(number('bytes_per_hour')), growth: greatest(number('growth_bytes')) },
  '/api/snapshot/series': {
    growth: greatest(number('growth_bytes')), count_growth: greatest(number('count_growth')), steadiness: greatest(number('steadiness')),
    steady: greatest((row) => number('growth_bytes')(row) * (number('growth_bytes')(row) > 0 ? number('steadiness')(row) : 1)), name: byText((row) => String(row['class'] ?? '')),
  },
};

const difference = (row: Row, metric: string) => number(metric)((row['after'] ?? {}) as Row) - number(metric)((row['before'] ?? {}) as Row);

/** Whether a row of a comparison differs. The server leaves out equal rows unless `same` is set. */
export function differs(path: string, sort: string, row: Row): boolean {
  if (path === '/api/diff') return difference(row, SORTS[sort] ?? '') !== 0;
  if (path !== '/api/snapshot/series') return true;
  return ['object_count_at', 'shallow_bytes_at', 'retained_bytes_at'].some((amounts) => new Set(row[amounts] as number[] | undefined).size > 1);
}

/** Returns the comparison of rows for an order; null if the order is unknown. */
export function rowOrder(path: string, sort: string): Order | null {
  if (path === '/api/report' || path === '/api/frame') return SORTS[sort] === undefined ? null : greatest(number(SORTS[sort]));
  if (path === '/api/functions') {
    const metric = SORTS[sort.replace(/-own$/, '')];
    const part = sort.endsWith('-own') ? 'own' : 'inclusive';
    return metric === undefined ? null : greatest((row) => number(metric)((row[part] ?? {}) as Row));
  }
  if (path === '/api/diff') return SORTS[sort] === undefined ? null : greatest((row) => Math.abs(difference(row, SORTS[sort] ?? '')));
  if (path === '/api/snapshot/diff') return sort === 'name' ? byText((row) => String(row['class'] ?? '')) : greatest(number(sort));
  if (path === '/api/snapshot/series' && /^\d+$/.test(sort)) return greatest((row) => (row['retained_bytes_at'] as number[] | undefined)?.[Number(sort)] ?? 0);
  return ORDERS[path]?.[sort] ?? null;
}
