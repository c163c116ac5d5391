/**
 * Elements of a table's rows. They are written without the framework, which took a quarter of each
 * frame of a scrolling table. An element is reused for another row, and the framework draws only
 * cells with elements of their own. While the table scrolls, only some rows are written in one
 * frame, so that no frame gets long.
 *
 * ```text
 * row 40, written before        stays as it is
 * row 41, new                   is written into the elements of row 41 - pool
 * row 42, not on its turn yet   those elements wait out of sight, for the next frame
 * row 43, not loaded yet        as row 42, and a short row says that it is on its way
 * ```
 */
import { type ComponentChild, render } from 'preact';
import type { Column } from './columns';

/**
 * Rows written anew in a frame of a scrolling table. All 34 of a large jump at once made frames of
 * 35 to 50 ms; with 8 and with 14 no frame of five runs took over 33.4 ms. Scrolling by 130 pixels
 * a frame needs 6.
 */
export const ROWS_IN_A_FRAME = 10;
const OUT_OF_SIGHT = '-99999px';

/** Row, with all that is visible of it. */
export interface RowState<Row> {
  /** Row, or undefined while it is loading. */
  row: Row | undefined;
  /** Depth, from 0. */
  depth: number;
  /** Whether the row is open; null if it has no children. */
  isOpen: boolean | null;
  isSelected: boolean;
  isCursor: boolean;
  class: string;
}

export interface RowsToDraw<Row> {
  first: number;
  end: number;
  /** Number of rows in the document: row `n` stands at index `n % pool`. */
  pool: number;
  /** Most rows that may be written anew. */
  most: number;
  /** Row whose upper edge is that of the block. */
  block: number;
  rowPx: number;
  columns: Column<Row>[];
  /** Whether rows may have children. */
  isTree: boolean;
  /** Other inputs of the rows: any change in here changes every row. */
  look: unknown[];
  /** CSS `flex` of the cells, by column. */
  cellFlex: string[];
  state: (index: number) => RowState<Row>;
}

interface Place<Row> {
  index: number;
  element: HTMLElement;
  cells: HTMLElement[];
  /** Text of a cell that has text only. */
  texts: (Text | null)[];
  /** State from which the elements were written; null before, and while they wait. */
  state: RowState<Row> | null;
  look: number;
  /** Widths of the cells. */
  widths: string;
  /** Element that stands in until the row is loaded. */
  waiting: HTMLElement | null;
}

export class RowElements<Row> {
  private readonly places = new Map<number, Place<Row>>();
  /** Number of rows and columns for which the elements were made. */
  private kind: unknown[] = [];
  /** Inputs of every row, and the number of their changes. */
  private look: unknown[] = [];
  private looks = 0;

  constructor(private readonly block: HTMLElement) {}

  /** Writes the rows; returns whether some are left for the next frame. */
  draw(now: RowsToDraw<Row>): boolean {
    const kind = [now.pool, now.isTree, ...now.columns.flatMap((column) => [column.key, column.cell !== undefined, column.isNumber])];
    if (!isSame(kind, this.kind)) this.clear();
    this.kind = kind;
    const look = [now.block, now.rowPx, ...now.look];
    if (!isSame(look, this.look)) this.looks += 1;
    this.look = look;
    const widths = now.cellFlex.join();
    for (const [at, place] of this.places) if (now.first + ((at - (now.first % now.pool) + now.pool) % now.pool) >= now.end) this.remove(at, place);
    let made = 0;
    let isLeft = false;
    for (let index = now.first; index < now.end; index += 1) {
      const state = now.state(index);
      let place = this.places.get(index % now.pool);
      if (state.row !== undefined && place?.index === index && place.look === this.looks && isSameState(place.state, state)) continue;
      if (state.row !== undefined && made >= now.most) {
        isLeft = true;
        if (place) hide(place, false);
        continue;
      }
      place ??= this.add(index % now.pool, now);
      if (state.row === undefined) {
        hide(place, true);
        place.waiting ??= this.block.appendChild(waitingRow());
        placeRow(place.waiting, index, state, now);
        continue;
      }
      made += 1;
      place.waiting?.remove();
      place.waiting = null;
      place.index = index;
      place.look = this.looks;
      place.state = state;
      placeRow(place.element, index, state, now);
      if (place.widths !== widths) place.cells.forEach((cell, at) => (cell.style.flex = now.cellFlex[at] ?? ''));
      place.widths = widths;
      writeCells(place, state.row, state, now);
    }
    return isLeft;
  }

  /**
   * Orders the elements like the rows, for screen readers. Done after scrolling, because moving
   * them would lengthen a frame.
   */
  order(): void {
    const rows = [...this.places.values()].flatMap((place) => [place.element, ...(place.waiting ? [place.waiting] : [])]);
    const number = (row: HTMLElement) => Number(row.getAttribute('aria-rowindex') ?? 0);
    rows.sort((a, b) => number(a) - number(b));
    rows.forEach((row, at) => this.block.children[at] !== row && this.block.insertBefore(row, this.block.children[at] ?? null));
  }

  clear(): void {
    for (const [at, place] of this.places) this.remove(at, place);
  }

  private remove(at: number, place: Place<Row>): void {
    place.cells.forEach((cell, number) => place.texts[number] === null && render(null, cell));
    place.element.remove();
    place.waiting?.remove();
    this.places.delete(at);
  }

  private add(at: number, { columns, isTree }: RowsToDraw<Row>): Place<Row> {
    const element = document.createElement('div');
    element.setAttribute('aria-hidden', 'true');
    const place: Place<Row> = { index: -1, element, cells: [], texts: [], state: null, look: 0, widths: '', waiting: null };
    columns.forEach((column, number) => {
      const cell = document.createElement('div');
      cell.className = column.isNumber ? 'cell is-number' : 'cell';
      cell.setAttribute('role', 'gridcell');
      place.cells.push(cell);
      place.texts.push(column.cell || (isTree && number === 0) ? null : cell.appendChild(document.createTextNode('')));
    });
    element.append(...place.cells);
    this.block.append(element);
    this.places.set(at, place);
    return place;
  }
}

function isSameState<Row>(before: RowState<Row> | null, now: RowState<Row>): boolean {
  return before !== null && before.row === now.row && before.depth === now.depth && before.isOpen === now.isOpen && before.isSelected === now.isSelected
    && before.isCursor === now.isCursor && before.class === now.class;
}

function isSame(before: unknown[], now: unknown[]): boolean {
  return before.length === now.length && before.every((input, at) => input === now[at]);
}

function waitingRow(): HTMLElement {
  const element = document.createElement('div');
  const cell = element.appendChild(document.createElement('div'));
  cell.className = 'cell is-waiting';
  cell.setAttribute('role', 'gridcell');
  cell.textContent = '…';
  return element;
}

/** Hides an element from search and screen readers. */
function hide<Row>(place: Place<Row>, isWaiting: boolean): void {
  if (!isWaiting) {
    place.waiting?.remove();
    place.waiting = null;
  }
  if (place.state === null) return;
  const { element } = place;
  place.state = null;
  place.index = -1;
  for (const name of ['id', 'aria-rowindex', 'aria-level', 'aria-expanded', 'aria-selected', 'data-index']) element.removeAttribute(name);
  element.setAttribute('aria-hidden', 'true');
  element.style.top = OUT_OF_SIGHT;
}

function placeRow<Row>(element: HTMLElement, index: number, state: RowState<Row>, { block, rowPx, isTree }: RowsToDraw<Row>): void {
  element.className = `row${state.isSelected ? ' is-selected' : ''}${state.isCursor ? ' is-cursor' : ''}${index % 2 ? ' is-odd' : ''} ${state.class}`;
  element.style.top = `${(index - block) * rowPx}px`;
  element.style.height = `${rowPx}px`;
  const set = (name: string, value: string | null) => (value === null ? element.removeAttribute(name) : element.setAttribute(name, value));
  set('id', state.isCursor ? 'table-cursor' : null);
  set('role', 'row');
  set('aria-hidden', null);
  set('aria-rowindex', String(index + 2));
  set('aria-level', isTree ? String(state.depth + 1) : null);
  set('aria-expanded', state.isOpen === null ? null : String(state.isOpen));
  set('aria-selected', String(state.isSelected));
  set('data-index', String(index));
}

function writeCells<Row>(place: Place<Row>, row: Row, state: RowState<Row>, { columns, isTree }: RowsToDraw<Row>): void {
  columns.forEach((column, at) => {
    const cell = place.cells[at];
    if (!cell) return;
    const text = place.texts[at];
    const shown = column.text(row);
    const title = column.exact ? column.exact(row) : shown;
    if (cell.title !== title) cell.title = title;
    if (text) {
      if (text.data !== shown) text.data = shown;
      return;
    }
    const content: ComponentChild[] = [column.cell ? column.cell(row) : shown].flat() as ComponentChild[];
    render(at === 0 && isTree ? <Indented depth={state.depth} isOpen={state.isOpen}>{content}</Indented> : <>{content}</>, cell);
  });
}

function Indented({ depth, isOpen, children }: { depth: number; isOpen: boolean | null; children: ComponentChild[] }) {
  return (
    <span class="in-tree">
      <span class="indent" style={{ marginLeft: `${depth * 1.1}rem` }}>
        <span class={`twisty${isOpen === null ? '' : isOpen ? ' is-open' : ' is-shut'}`} aria-hidden="true" />
      </span>
      {children}
    </span>
  );
}
