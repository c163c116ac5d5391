/**
 * Hook that draws the rows of a table at its scroll position, and fetches them: after each change,
 * and directly while scrolling.
 */
import { type RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { LazyTree } from './lazy-tree';
import { ROWS_IN_A_FRAME, RowElements, type RowsToDraw } from './row-elements';
import { scrollWindow } from './scroll-window';

/** Rows whose positions are relative to the same one. */
const BLOCK_ROWS = 2000;
/**
 * Rows drawn beyond the edges. The view moves only with a frame of the page, so that more would
 * never be visible.
 */
const OVERSCAN = 1;
/**
 * Rows fetched in advance: a quarter of a second at 130 pixels a frame, and less than a page of
 * them.
 */
const AHEAD_ROWS = 80;
/** Time without a scroll event after which scrolling has ended. */
const STILL_MS = 150;

export interface ShownRows<Row> extends Pick<RowsToDraw<Row>, 'columns' | 'isTree' | 'cellFlex' | 'look' | 'state' | 'rowPx'> {
  tree: LazyTree<Row>;
  view: RefObject<HTMLElement | null>;
  viewPx: number;
}

/**
 * Returns the hook's handles: `block` holds the rows, `onScroll` is for the scrolling element,
 * `draw` for rows that have loaded.
 */
export function useRows<Row>(shown: ShownRows<Row>): { block: RefObject<HTMLDivElement | null>; onScroll: () => void; draw: () => void } {
  const block = useRef<HTMLDivElement>(null);
  const drawing = useRef<Drawing<Row> | null>(null);
  useLayoutEffect(() => {
    if (!block.current || !shown.view.current) return;
    drawing.current ??= new Drawing<Row>(shown.view.current, block.current);
    drawing.current.draw(shown);
  });
  useEffect(() => () => drawing.current?.close(), []);
  return { block, onScroll: () => drawing.current?.scrolled(), draw: () => drawing.current?.drawAgain() };
}

class Drawing<Row> {
  private readonly elements: RowElements<Row>;
  private shown: ShownRows<Row> | null = null;
  private scrolledAt = -Infinity;
  /** Frame in which the rows were drawn last. */
  private drawnIn: unknown = null;
  private need: { first: number; end: number } | null = null;
  private neededFirst = 0;
  private nextFrame = 0;
  private rest = 0;

  constructor(private readonly view: HTMLElement, private readonly block: HTMLElement) {
    this.elements = new RowElements<Row>(block);
  }

  scrolled(): void {
    this.scrolledAt = performance.now();
    if (this.shown) this.draw(this.shown);
  }

  drawAgain(): void {
    if (this.shown) this.draw(this.shown);
  }

  close(): void {
    cancelAnimationFrame(this.nextFrame);
    clearTimeout(this.rest);
    this.shown = null;
    this.elements.clear();
  }

  draw(shown: ShownRows<Row>): void {
    this.shown = shown;
    const { tree, rowPx, viewPx, columns, isTree, cellFlex, look, state } = shown;
    const count = tree.count;
    const seen = scrollWindow(count, rowPx, viewPx, this.view.scrollTop);
    const first = Math.max(0, seen.first - OVERSCAN);
    // One row more is visible if two are cut. The number is constant, so that no row comes and
    // goes.
    const pool = Math.ceil(viewPx / rowPx) + 1 + 2 * OVERSCAN;
    const end = Math.min(count, first + pool);
    // Rows are fixed in blocks; scrolling moves the block.
    const block = Math.floor(first / BLOCK_ROWS) * BLOCK_ROWS;
    this.block.style.transform = `translateY(${(block - seen.first) * rowPx + seen.offsetPx}px)`;
    const most = performance.now() - this.scrolledAt < STILL_MS ? ROWS_IN_A_FRAME : Infinity;
    const isLeft = this.elements.draw({ first, end, pool, most, block, rowPx, columns, isTree, cellFlex, look, state });
    this.drawnIn = document.timeline.currentTime;
    if (isLeft) this.drawInNextFrame();
    this.fetchLater(first, end);
    clearTimeout(this.rest);
    this.rest = window.setTimeout(() => this.elements.order(), STILL_MS);
  }

  private drawInNextFrame(): void {
    cancelAnimationFrame(this.nextFrame);
    this.nextFrame = requestAnimationFrame(() => {
      // A scroll event has drawn in this frame.
      if (document.timeline.currentTime === this.drawnIn) this.drawInNextFrame();
      else if (this.shown) this.draw(this.shown);
    });
  }

  /** Sends requests after the frame, because each takes some milliseconds. */
  private fetchLater(first: number, end: number): void {
    if (this.need === null) setTimeout(() => this.fetch(), 0);
    this.need = { first, end };
  }

  private fetch(): void {
    const { need, shown } = this;
    this.need = null;
    if (!need || !shown) return;
    const moved = need.first - this.neededFirst;
    this.neededFirst = need.first;
    shown.tree.need(need.first, need.end, Math.abs(moved) < AHEAD_ROWS ? Math.sign(moved) * AHEAD_ROWS : 0);
  }
}
