/**
 * Table of any length: only the visible rows are in the document. The server sorts; opened rows
 * show children.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { plural } from '../format';
import { copyText } from '../frame/clipboard';
import { Message } from '../frame/message';
import { isDrawnDark } from '../frame/theme';
import { type Column, rowsAsText } from './columns';
import type { LazyTree } from './lazy-tree';
import type { RowState } from './row-elements';
import { scrolledHeight, scrollTo } from './scroll-window';
import { TableMenu } from './table-menu';
import { useRows } from './use-rows';

export interface TableProps<Row> {
  /** Label for screen readers; also the name of a saved file. */
  label: string;
  columns: Column<Row>[];
  tree: LazyTree<Row>;
  rowKey: (row: Row) => string;
  selected?: string;
  onSelect?: (row: Row) => void;
  /** Called on Enter or a double click. */
  onActivate?: (row: Row) => void;
  /** Whether a row has children. */
  canOpen?: (row: Row) => boolean;
  sort?: string;
  descending?: boolean;
  onSort?: (key: string, descending: boolean) => void;
  hidden: string[];
  onHide: (hidden: string[]) => void;
  /** Text without any row. */
  empty?: string;
  rowClass?: (row: Row) => string;
  /** Whether the rows are those of the previous request, while new ones are loading. */
  isOld?: boolean;
  /** Elements beside the count above the table. */
  tools?: ComponentChildren;
}

/** Least width of a column with the remaining width. */
const NAME_REM = 14;

export function Table<Row>(props: TableProps<Row>) {
  const { columns, tree, hidden } = props;
  const shown = columns.filter((column) => (column.isExtra ? hidden.includes(`+${column.key}`) : !hidden.includes(column.key)));
  const view = useRef<HTMLDivElement>(null);
  const [, redraw] = useState(0);
  const [size, setSize] = useState({ viewPx: 600, rowPx: 22 });
  const [cursor, setCursor] = useState(-1);
  const [anchor, setAnchor] = useState(-1);
  const [widths, setWidths] = useState<Record<string, number>>({});
  const [said, setSaid] = useState('');
  const shownName = useRef('');
  /** Facts that the table shows about its rows, beside the rows themselves. */
  const shownFacts = useRef('');
  shownFacts.current = factsOf(tree);
  const drawRows = useRef(() => {});

  useEffect(() => {
    if (tree.name === '' || tree.name !== shownName.current) {
      setCursor(-1);
      setAnchor(-1);
      if (view.current) view.current.scrollTop = 0;
    }
    shownName.current = tree.name;
    let waiting = false;
    return tree.listen(() => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        // Pages that load during scrolling change rows only.
        if (shownFacts.current === factsOf(tree)) drawRows.current();
        else redraw((count) => count + 1);
      });
    });
  }, [tree]);

  useLayoutEffect(() => {
    const element = view.current;
    if (!element) return;
    const measure = () => {
      const rowPx = Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 1.7);
      // The height below the head; otherwise the last row could not be seen.
      const viewPx = element.clientHeight - (element.querySelector<HTMLElement>('.is-head')?.offsetHeight ?? 0);
      setSize((old) => (old.viewPx === viewPx && old.rowPx === rowPx ? old : { viewPx, rowPx }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const { viewPx, rowPx } = size;
  const [low, high] = [Math.min(anchor, cursor), Math.max(anchor, cursor)];
  const count = tree.count;
  const select = (index: number, extend: boolean) => {
    const to = Math.max(0, Math.min(count - 1, index));
    setCursor(to);
    if (!extend) setAnchor(to);
    const element = view.current;
    if (element) element.scrollTop = scrollTo(to, count, rowPx, viewPx, element.scrollTop);
    const row = tree.at(to)?.row;
    if (row !== undefined && !extend) props.onSelect?.(row);
  };
  const toggle = (index: number) => {
    const at = tree.at(index);
    if (!at?.row || !props.canOpen?.(at.row)) return;
    if (at.isOpen) tree.shut(index);
    else tree.open(index);
  };

  const copyPicked = async () => {
    const rows: Row[] = [];
    for (let index = Math.max(0, low); index <= high; index += 1) {
      const row = tree.at(index)?.row;
      if (row !== undefined) rows.push(row);
    }
    try {
      await copyText(rowsAsText(shown, rows));
      setSaid(`${plural(rows.length, 'row')} copied`);
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key === 'c' && cursor >= 0 && window.getSelection()?.isCollapsed !== false) {
      event.preventDefault();
      void copyPicked();
      return;
    }
    if (event.altKey || ((event.ctrlKey || event.metaKey) && event.key !== 'Home' && event.key !== 'End')) return;
    const page = Math.max(1, Math.floor(viewPx / rowPx) - 1);
    const at = tree.at(cursor);
    const steps: Record<string, () => void> = {
      ArrowDown: () => select(cursor + 1, event.shiftKey),
      ArrowUp: () => select(Math.max(0, cursor - 1), event.shiftKey),
      PageDown: () => select(cursor + page, event.shiftKey),
      PageUp: () => select(cursor - page, event.shiftKey),
      Home: () => select(0, event.shiftKey),
      End: () => select(count - 1, event.shiftKey),
      ArrowRight: () => (at && !at.isOpen ? toggle(cursor) : select(cursor + 1, false)),
      ArrowLeft: () => {
        if (at?.isOpen) toggle(cursor);
        else if (at && at.depth > 0) select(tree.parentIndex(cursor), false);
      },
      ' ': () => toggle(cursor),
      Enter: () => (at?.row !== undefined && props.onActivate ? props.onActivate(at.row) : toggle(cursor)),
    };
    const step = steps[event.key];
    if (!step || count === 0) return;
    event.preventDefault();
    event.stopPropagation();
    step();
  };

  // All rows have the same widths, whatever their texts, so that columns stand below their heads.
  const cellFlex = shown.map((column) => {
    const width = widths[column.key];
    return width !== undefined ? `0 0 ${width}px` : column.width === 0 ? `1 0 ${NAME_REM}rem` : `0 0 ${column.width}rem`;
  });
  const leastWidth = shown.map((column) => (widths[column.key] !== undefined ? `${widths[column.key]}px` : `${column.width === 0 ? NAME_REM : column.width}rem`)).join(' + ');
  const state = (index: number): RowState<Row> => {
    const at = tree.at(index);
    const row = at?.row;
    return {
      row, depth: at?.depth ?? 0, isOpen: row !== undefined && props.canOpen?.(row) === true ? at?.isOpen === true : null,
      isSelected: (index >= low && index <= high && low >= 0) || (row !== undefined && props.selected === props.rowKey(row)), isCursor: index === cursor,
      class: row !== undefined ? (props.rowClass?.(row) ?? '') : '',
    };
  };
  const { block, onScroll, draw } = useRows({ view, tree, columns: shown, isTree: props.canOpen !== undefined, cellFlex, state, rowPx, viewPx, look: [isDrawnDark(), tree, columns, hidden, widths, props.rowClass] });
  drawRows.current = draw;
  const indexOf = (event: Event): number => Number((event.target as HTMLElement).closest<HTMLElement>('.row[data-index]')?.dataset['index'] ?? -1);
  const onMouseDown = (event: MouseEvent) => {
    const index = indexOf(event);
    if (index < 0 || event.button !== 0) return;
    if ((event.target as HTMLElement).classList.contains('twisty')) {
      setCursor(index);
      toggle(index);
    } else {
      select(index, event.shiftKey);
    }
  };
  const onDblClick = (event: MouseEvent) => {
    const index = indexOf(event);
    if (index < 0 || (event.target as HTMLElement).classList.contains('twisty')) return;
    const row = tree.at(index)?.row;
    if (row !== undefined && props.onActivate) props.onActivate(row);
    else toggle(index);
  };

  // No rows of the previous request say nothing about this one.
  const isEmpty = tree.topCount === 0 && !props.isOld;
  return (
    <section class="table-box">
      <div class="table-tools">
        {props.tools}
        <TableMenu
          label={props.label} columns={columns} shown={shown} tree={tree} hidden={hidden} onHide={props.onHide}
          said={said} picked={low >= 0 ? { from: low, to: high } : null} onCopy={() => void copyPicked()}
        />
      </div>
      {tree.error && <Message kind="error">{tree.error.message}</Message>}
      <div
        ref={view} class={`table${props.isOld ? ' is-old' : ''}${Object.keys(widths).length > 0 ? ' is-resized' : ''}`} role={props.canOpen ? 'treegrid' : 'grid'} aria-label={props.label} aria-rowcount={count + 1}
        aria-activedescendant={cursor >= 0 ? 'table-cursor' : undefined} tabIndex={0} onKeyDown={onKeyDown}
        onScroll={onScroll}
        onFocus={() => {
          if (cursor < 0 && count > 0) setCursor(0);
        }}
        style={{ '--least-width': `calc(${leastWidth})` }}
      >
        <div class="row is-head" role="row" aria-rowindex={1}>
          {shown.map((column, place) => (
            <HeadCell
              key={column.key} column={column} flex={cellFlex[place] ?? ''} isSorted={column.sort !== undefined && column.sort === props.sort}
              descending={props.descending ?? true} onSort={props.onSort}
              onWidth={(width) => setWidths((old) => ({ ...old, [column.key]: width }))}
            />
          ))}
        </div>
        <div class="rows" style={{ height: `${scrolledHeight(count, rowPx)}px` }}>
          <div class="rows-seen" onMouseDown={onMouseDown} onDblClick={onDblClick}>
            <div ref={block} class="rows-block" />
          </div>
        </div>
        {isEmpty && !tree.error && <p class="empty">{props.empty ?? 'Nothing here.'}</p>}
        {(tree.topCount === null || (tree.topCount === 0 && !isEmpty)) && !tree.error && <p class="empty" role="status">Loading…</p>}
      </div>
    </section>
  );
}

function factsOf<Row>(tree: LazyTree<Row>): string {
  return `${tree.count} ${tree.topCount} ${tree.error?.message ?? ''}`;
}

interface HeadCellProps<Row> {
  column: Column<Row>;
  /** CSS `flex`, as that of the cells below. */
  flex: string;
  isSorted: boolean;
  descending: boolean;
  onSort: ((key: string, descending: boolean) => void) | undefined;
  onWidth: (widthPx: number) => void;
}

function HeadCell<Row>({ column, flex, isSorted, descending, onSort, onWidth }: HeadCellProps<Row>) {
  const cell = useRef<HTMLDivElement>(null);
  const drag = (down: PointerEvent) => {
    down.preventDefault();
    down.stopPropagation();
    const handle = down.currentTarget as HTMLElement;
    const startPx = cell.current?.offsetWidth ?? 100;
    handle.setPointerCapture(down.pointerId);
    handle.onpointermove = (move) => onWidth(Math.max(32, startPx + move.clientX - down.clientX));
    handle.onpointerup = () => {
      handle.onpointermove = null;
    };
  };
  return (
    <div
      ref={cell} class={`cell${column.isNumber ? ' is-number' : ''}`} role="columnheader" title={column.help ?? column.title} style={{ flex }}
      aria-sort={isSorted ? (descending ? 'descending' : 'ascending') : undefined}
    >
      {column.sort !== undefined && onSort ? (
        <button type="button" class="sort" onClick={() => onSort(column.sort ?? '', isSorted ? !descending : true)}>
          {column.title}
          <span aria-hidden="true">{isSorted ? (descending ? ' ▾' : ' ▴') : ''}</span>
        </button>
      ) : (
        column.title
      )}
      <span class="resize" aria-hidden="true" onPointerDown={drag} />
    </div>
  );
}
