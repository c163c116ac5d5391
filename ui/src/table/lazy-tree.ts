/**
 * Tree whose rows are fetched page by page, with the children of opened rows below them. A table is
 * a tree without open rows.
 *
 * ```text
 * level (root)   rows 0..count, in pages      visible rows = count + visible rows of the open levels
 *   open: [{at: 3, level}, {at: 90, level}]   row n is found by stepping over the open levels, which are few
 * ```
 */

/** Fetches one page of the rows below `parent` (null for the top). */
export type FetchPage<Row> = (parent: Row | null, offset: number, limit: number, signal: AbortSignal) => Promise<{ rows: Row[]; count: number }>;

export interface VisibleRow<Row> {
  /** Row, or undefined while it is loading. */
  row: Row | undefined;
  depth: number;
  /** Index among its siblings, and their number. */
  position: number;
  siblings: number;
  isOpen: boolean;
  parent: Row | null;
}

interface Level<Row> {
  parent: Row | null;
  depth: number;
  /** Number of rows; null until the first page is loaded. */
  count: number | null;
  pages: Map<number, Row[] | 'loading'>;
  open: { at: number; level: Level<Row> }[];
}

/** Rows of a request: as many as a large screen shows. */
export const PAGE_ROWS = 100;
/** Most cached pages of a level; those farthest from the visible rows are removed first. */
const PAGES_KEPT = 100;

export class LazyTree<Row> {
  private readonly top: Level<Row>;
  private readonly abort = new AbortController();
  private readonly listeners = new Set<() => void>();
  /** Last error. */
  error: Error | null = null;

  /** First row requested last. */
  neededFrom = 0;

  /** `name`: trees of the same name hold answers to the same request, one newer than the other. */
  constructor(private readonly fetchPage: FetchPage<Row>, readonly name = '') {
    this.top = { parent: null, depth: 0, count: null, pages: new Map(), open: [] };
  }

  /** Number of visible rows; 0 until the first page is loaded. */
  get count(): number {
    return visible(this.top);
  }

  /** Number of rows of the top level, or null while it is unknown. */
  get topCount(): number | null {
    return this.top.count;
  }

  /** Calls `listener` after each change, until the returned function is called. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }

  /** Cancels all requests; the tree must not be used afterwards. */
  close(): void {
    this.abort.abort();
    this.listeners.clear();
  }

  /** Begins to load the page with this row. */
  start(row = 0): void {
    this.load(this.top, Math.floor(row / PAGE_ROWS));
  }

  at(index: number): VisibleRow<Row> | undefined {
    const found = this.find(index);
    if (!found) return undefined;
    const { level, position } = found;
    return {
      row: rowOf(level, position),
      depth: level.depth,
      position,
      siblings: level.count ?? 0,
      isOpen: level.open.some((open) => open.at === position),
      parent: level.parent,
    };
  }

  /**
   * Loads the missing visible rows `from` to below `to`, then the row that is `ahead` rows farther
   * (before them, if negative).
   */
  need(from: number, to: number, ahead = 0): void {
    this.neededFrom = from;
    const rows = Math.min(to, this.count);
    for (let index = from; index < rows; index += 1) this.loadRow(index);
    if (ahead !== 0) this.loadRow(ahead > 0 ? rows - 1 + ahead : from + ahead);
  }

  /** Opens a row: its children follow it. Ignores a row that is open or not loaded. */
  open(index: number): void {
    const found = this.find(index);
    if (!found) return;
    const row = rowOf(found.level, found.position);
    if (row === undefined || found.level.open.some((open) => open.at === found.position)) return;
    const level: Level<Row> = { parent: row, depth: found.level.depth + 1, count: null, pages: new Map(), open: [] };
    found.level.open.push({ at: found.position, level });
    found.level.open.sort((a, b) => a.at - b.at);
    this.load(level, 0);
    this.tell();
  }

  /** Closes a row, and with it all open rows below it. */
  shut(index: number): void {
    const found = this.find(index);
    if (!found) return;
    found.level.open = found.level.open.filter((open) => open.at !== found.position);
    this.tell();
  }

  /** Returns the visible index of the parent of the row at `index`; -1 at the top. */
  parentIndex(index: number): number {
    const here = this.find(index);
    if (!here || here.level.depth === 0) return -1;
    for (let above = index - 1; above >= 0; above -= 1) {
      const candidate = this.find(above);
      if (candidate && candidate.level.depth === here.level.depth - 1) return above;
    }
    return -1;
  }

  /** Returns all rows of the top level up to `most`, for copying and saving. */
  async all(most: number): Promise<Row[]> {
    const rows: Row[] = [];
    while (rows.length < most) {
      const page = await this.fetchPage(null, rows.length, Math.min(1000, most - rows.length), this.abort.signal);
      rows.push(...page.rows);
      if (page.rows.length === 0 || rows.length >= page.count) break;
    }
    return rows;
  }

  private find(index: number): { level: Level<Row>; position: number } | undefined {
    if (index < 0) return undefined;
    let level = this.top;
    let left = index;
    for (;;) {
      let inside: Level<Row> | undefined;
      /** Visible rows of the open levels before. */
      let before = 0;
      for (const open of level.open) {
        const start = open.at + before;
        if (left <= start) break;
        const size = visible(open.level);
        if (left <= start + size) {
          inside = open.level;
          left -= start + 1;
          break;
        }
        before += size;
      }
      if (!inside) {
        const position = left - before;
        return position < rowCount(level) ? { level, position } : undefined;
      }
      level = inside;
    }
  }

  private loadRow(index: number): void {
    const found = this.find(index);
    if (found && rowOf(found.level, found.position) === undefined) this.load(found.level, Math.floor(found.position / PAGE_ROWS));
  }

  private load(level: Level<Row>, page: number): void {
    if (level.pages.has(page) || this.abort.signal.aborted) return;
    level.pages.set(page, 'loading');
    this.fetchPage(level.parent, page * PAGE_ROWS, PAGE_ROWS, this.abort.signal)
      .then(({ rows, count }) => {
        level.pages.set(page, rows);
        level.count = count;
        this.error = null;
        forgetFarPages(level, page);
        this.tell();
      })
      .catch((error: unknown) => {
        if (this.abort.signal.aborted) return;
        level.pages.delete(page);
        level.count ??= 0;
        this.error = error instanceof Error ? error : new Error(String(error));
        this.tell();
      });
  }

  private tell(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

/** Number of rows of a level; an open level that is still unknown shows one row that says so. */
function rowCount<Row>(level: Level<Row>): number {
  return level.count ?? (level.depth === 0 ? 0 : 1);
}

function visible<Row>(level: Level<Row>): number {
  let count = rowCount(level);
  for (const open of level.open) count += visible(open.level);
  return count;
}

function rowOf<Row>(level: Level<Row>, position: number): Row | undefined {
  const page = level.pages.get(Math.floor(position / PAGE_ROWS));
  return page === undefined || page === 'loading' ? undefined : page[position % PAGE_ROWS];
}

function forgetFarPages<Row>(level: Level<Row>, near: number): void {
  if (level.pages.size <= PAGES_KEPT) return;
  const far = [...level.pages.keys()]
    .filter((page) => level.pages.get(page) !== 'loading')
    .sort((a, b) => Math.abs(b - near) - Math.abs(a - near));
  for (const page of far.slice(0, level.pages.size - PAGES_KEPT)) level.pages.delete(page);
}
