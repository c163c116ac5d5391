/**
 * Answers in a page without a server. A table is recorded in one order or a few; for any other
 * order its recorded rows are sorted here. Those are all rows, or the first of a long table.
 */
import { recordedKey } from './recorded-key';
import { type Row, differs, rowOrder } from './recorded-order';

/** Fields of an answer with rows, and the fields with their number. */
const ROWS = [['groups', 'match_count'], ['functions', 'match_count'], ['rows', 'row_count'], ['callers', ''], ['callees', '']] as const;

/** Default orders of requests. */
const OWN_ORDERS: Record<string, string> = { '/api/leaks': 'bytes', '/api/functions': 'so' };

export class RecordedAnswers {
  private readonly byKey: Map<string, unknown>;
  /** Answers in some order, by their key without an order. */
  private readonly inAnyOrder = new Map<string, unknown>();

  constructor(answers: Record<string, unknown>) {
    this.byKey = new Map(Object.entries(answers));
    for (const [key, answer] of this.byKey) {
      const space = key.indexOf(' ');
      if (space < 0) continue;
      const body = JSON.parse(key.slice(space)) as { sort?: string };
      const orderless = recordedKey(key.slice(0, space), { ...body, sort: null });
      if (!this.inAnyOrder.has(orderless)) this.inAnyOrder.set(orderless, answer);
    }
  }

  /** Returns the answer to a request, with the requested rows; undefined if it was not recorded. */
  find(path: string, body: unknown): unknown {
    const asked = (body ?? {}) as { match?: string; by_own?: boolean; sort?: string; descending?: boolean; offset?: number; limit?: number; same?: boolean };
    const text = (asked.match ?? '').toLowerCase();
    const bare = { ...asked, match: null, by_own: null };
    const known = this.byKey.get(recordedKey(path, bare));
    const isInOrder = known !== undefined && asked.descending !== false && !asked.by_own;
    const answer = known ?? (asked.sort === undefined ? undefined : this.inAnyOrder.get(recordedKey(path, { ...bare, sort: null })));
    if (typeof answer !== 'object' || answer === null) return answer;
    const found: Record<string, unknown> = { ...answer };
    const { offset, limit } = asked;
    for (const [name, count] of ROWS) {
      const list = found[name];
      if (!Array.isArray(list)) continue;
      const sort = `${asked.sort ?? OWN_ORDERS[path] ?? ''}${asked.by_own ? '-own' : ''}`;
      const differing = asked.same === false ? (list as Row[]).filter((row) => differs(path, sort, row)) : (list as Row[]);
      // A search covers the recorded rows: all, or the first of a long table.
      const wanted = text === '' ? differing : differing.filter((row) => holds(row, text));
      const ordered = isInOrder ? wanted : sorted(wanted, path, sort, asked.descending !== false);
      if (!ordered) return undefined;
      if (count === '') {
        found[name] = ordered;
        continue;
      }
      found[name] = offset === undefined || limit === undefined ? ordered : ordered.slice(offset, offset + limit);
      // The table ends where the recording does.
      found[count] = wanted.length;
    }
    return found;
  }
}

/** Whether one of a row's names contains a text. */
function holds(row: Row, text: string): boolean {
  const named = [row['frames'], row['frame'], row['names'], row['name'], row['class'], row['thread']].filter((part) => part !== undefined);
  return JSON.stringify(named.length > 0 ? named : row).toLowerCase().includes(text);
}

/** Sorts rows in an order of the server; undefined if the order is unknown here. */
function sorted(rows: Row[], path: string, sort: string, descending: boolean): Row[] | undefined {
  const order = rowOrder(path, sort);
  if (!order) return undefined;
  const inOrder = [...rows].sort(order);
  return descending ? inOrder : inOrder.reverse();
}
