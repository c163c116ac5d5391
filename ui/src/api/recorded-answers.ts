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
  /** Answers, or their text until they are asked for: all of them take seconds to parse. */
  private readonly byKey: Map<string, { text: string } | { answer: unknown }>;
  /** Keys of answers in some order, by the key without an order. */
  private readonly inAnyOrder = new Map<string, string>();

  private constructor(byKey: Map<string, { text: string } | { answer: unknown }>) {
    this.byKey = byKey;
    for (const key of byKey.keys()) {
      const space = key.indexOf(' ');
      if (space < 0) continue;
      const body = JSON.parse(key.slice(space)) as { sort?: string };
      const orderless = recordedKey(key.slice(0, space), { ...body, sort: null });
      if (!this.inAnyOrder.has(orderless)) this.inAnyOrder.set(orderless, key);
    }
  }

  static of(answers: Record<string, unknown>): RecordedAnswers {
    return new RecordedAnswers(new Map(Object.entries(answers).map(([key, answer]) => [key, { answer }])));
  }

  /** Reads the text of an object, fast if it has one answer a line. */
  static ofText(json: string): RecordedAnswers {
    const byKey = new Map<string, { text: string }>();
    for (const line of json.split('\n')) {
      const key = /^"(?:[^"\\]|\\.)*":/.exec(line)?.[0];
      // A comma follows, or the bracket that ends the object.
      if (key) byKey.set(JSON.parse(key.slice(0, -1)) as string, { text: line.slice(key.length, -1) });
    }
    if (byKey.size === 0 && json !== '') return RecordedAnswers.of(JSON.parse(json) as Record<string, unknown>);
    return new RecordedAnswers(byKey);
  }

  private get(key: string | undefined): unknown {
    const known = key === undefined ? undefined : this.byKey.get(key);
    if (!known || !key) return undefined;
    if ('answer' in known) return known.answer;
    const answer: unknown = JSON.parse(known.text);
    this.byKey.set(key, { answer });
    return answer;
  }

  /**
   * Returns the answer to a request, with the requested rows; undefined if it was not recorded.
   * `isWhole`: not from the first rows of a table in another order.
   */
  find(path: string, body: unknown, isWhole = false): unknown {
    const asked = (body ?? {}) as { match?: string; by_own?: boolean; sort?: string; descending?: boolean; offset?: number; limit?: number; same?: boolean };
    const text = (asked.match ?? '').toLowerCase();
    const bare = { ...asked, match: null, by_own: null };
    // The rows of one name may be recorded by themselves: all of them, however long the table is.
    const ofName = text === '' ? undefined : this.get(recordedKey(path, { ...asked, by_own: null }));
    const known = ofName ?? this.get(recordedKey(path, bare));
    const isInOrder = known !== undefined && asked.descending !== false && !asked.by_own;
    const answer = known ?? (asked.sort === undefined ? undefined : this.get(this.inAnyOrder.get(recordedKey(path, { ...bare, sort: null }))));
    if (typeof answer !== 'object' || answer === null) return answer;
    if (isWhole && !known && !hasAllRows(answer as Record<string, unknown>)) return undefined;
    const found: Record<string, unknown> = { ...answer };
    const { offset, limit } = asked;
    for (const [name, count] of ROWS) {
      const list = found[name];
      if (!Array.isArray(list)) continue;
      const sort = `${asked.sort ?? OWN_ORDERS[path] ?? ''}${asked.by_own ? '-own' : ''}`;
      const differing = asked.same === false ? (list as Row[]).filter((row) => differs(path, sort, row)) : (list as Row[]);
      // A search covers the recorded rows: all, or the first of a long table.
      const wanted = text === '' || ofName !== undefined ? differing : differing.filter((row) => holds(row, text));
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

/** Whether an answer has all rows of its table. */
function hasAllRows(answer: Record<string, unknown>): boolean {
  return ROWS.every(([name, count]) => !Array.isArray(answer[name]) || (count !== '' && answer[name].length >= Number(answer[count] ?? 0)));
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
