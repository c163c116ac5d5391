/**
 * Call tree as a table: inclusive and self amounts of each function, from the program's start down,
 * or from the allocating functions up.
 */
import { useEffect, useMemo } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { flameLayout, isOwn, nodeImage, nodeName } from '../flame/flame-layout';
import { foldLibraries } from '../flame/fold-libraries';
import type { FlameAnswer } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { exactBytes, formatBytes, formatCount, formatPercent } from '../format';
import { linkedName } from '../image-links';
import type { Column } from '../table/columns';
import { Table } from '../table/table';
import { useTree } from '../table/use-tree';
import { defaultValue } from './default-metric';
import { within } from './estimate';
import { FLAME_VALUES } from './flame-view';
import { ImageSwatch, SymbolText } from './frame-name';
import { CollapsedImages, LibrarySwitch } from './library-switch';
import { LineSwitch } from './line-switch';
import type { TraceViewProps } from './view-props';

interface CallRow {
  node: number;
  id: string;
  value: number;
  self: number;
  /** Half of the amounts' intervals, if they are estimates. */
  valueHalf: number;
  selfHalf: number;
  hasChildren: boolean;
  /** Whether the row sums parts that are too small to be sent. */
  isRest?: boolean;
}

export function TreeView({ file, filter, onCommand }: TraceViewProps) {
  const address = useAddress();
  const value = FLAME_VALUES.some(([key]) => key === address.value) ? address.value : defaultValue(file, filter);
  const direction = address.direction === 'bottom-up' ? 'bottom-up' : 'top-down';
  const body = { file: file.file, filter, value, direction, collapse_recursion: address.recursion, ...(address.lines ? { by_line: true } : {}), focus: null, root: null, least_share: 0.0002, nodes_max: 30000 };
  const { data, error, isLoading } = useAnswer<FlameAnswer>('/api/flame', body, file.generation);
  useEffect(() => onCommand(data?.command ?? null, error?.message ?? null), [data, error]);
  useEffect(() => () => onCommand(null, null), []);
  const layout = useMemo(() => (data ? flameLayout(foldLibraries(data, { libraries: !address.libraries, images: address.collapsed })) : null), [data, address.libraries, address.collapsed.join('/')]);
  const children = useMemo(() => {
    const lists: number[][] = [];
    layout?.answer.nodes.parent.forEach((parent, node) => parent !== null && parent >= 0 && (lists[parent] ??= []).push(node));
    for (const list of lists) list?.sort((one, other) => (layout?.widths[other] ?? 0) - (layout?.widths[one] ?? 0) || one - other);
    return lists;
  }, [layout]);
  const { tree } = useTree<CallRow>(`${JSON.stringify(body)} ${layout ? layout.answer.nodes.id.length : -1} ${address.libraries} ${address.collapsed.join('/')}`, (parent, offset, limit) => {
    const of = parent ? parent.node : 0;
    const rows: CallRow[] = (layout ? (children[of] ?? []) : []).map((node) => ({
      node, id: layout?.answer.nodes.id[node] ?? '', value: layout?.widths[node] ?? 0, self: layout?.answer.nodes.self?.[node] ?? 0,
      valueHalf: layout?.answer.nodes.value_plus_minus?.[node] ?? 0, selfHalf: layout?.answer.nodes.self_plus_minus?.[node] ?? 0,
      hasChildren: (children[node]?.length ?? 0) > 0 || (layout?.answer.nodes.left_out?.[node] ?? 0) > 0,
    }));
    const rest = layout?.answer.nodes.left_out?.[of] ?? 0;
    if (rest > 0) rows.push({ node: -1, id: `rest ${of}`, value: rest, self: 0, valueHalf: layout?.answer.nodes.left_out_plus_minus?.[of] ?? 0, selfHalf: 0, hasChildren: false, isRest: true });
    return Promise.resolve({ rows: rows.slice(offset, offset + limit), count: rows.length });
  }, file.generation);
  // The path that holds most is open from the start, as far as one function has nearly all of its
  // parent's amount.
  useEffect(() => {
    if (!layout || tree.topCount === null) return;
    let index = 0;
    const step = () => {
      for (; index < 40; index += 1) {
        const at = tree.at(index);
        if (!at?.row) return;
        if (!at.row.hasChildren || at.row.value < 0.6 * layout.total) return stop();
        // Opening a row notifies the listeners, this step among them.
        if (!at.isOpen) return void (index += 1, tree.open(index - 1));
      }
      stop();
    };
    const stop = tree.listen(step);
    step();
    return stop;
  }, [tree, layout]);
  const isBytes = value.endsWith('_bytes');
  const amount = isBytes ? formatBytes : formatCount;
  const exact = isBytes ? exactBytes : formatCount;
  const isSampled = layout?.answer.nodes.value_plus_minus !== undefined;
  const nameOf = (row: CallRow) => (row.isRest || !layout ? 'smaller parts' : nodeName(layout, row.node));
  const columns: Column<CallRow>[] = [
    {
      key: 'function', title: direction === 'top-down' ? 'Function, and what it calls' : 'Who allocates, and who calls it', width: 0, text: nameOf,
      exact: (row) => (row.isRest || !layout ? 'parts that are too small to be told one by one' : `${nodeImage(layout, row.node)}!${nodeName(layout, row.node)}`),
      cell: (row) => (row.isRest || !layout ? <span class="quiet">smaller parts</span> : <span class="frame-name"><ImageSwatch name={nodeImage(layout, row.node)} /><SymbolText name={nameOf(row)} isOwn={layout.hasOwn && isOwn(layout, row.node)} /><span class="quiet">{linkedName(nodeImage(layout, row.node))}</span></span>),
    },
    { key: 'percent', title: '%', isNumber: true, width: 4.4, text: (row) => (layout ? formatPercent(row.value, layout.total).replace(' %', '') : '') },
    { key: 'with', title: direction === 'top-down' ? 'With callees' : 'Through it', isNumber: true, width: isSampled ? 12 : 8, text: (row) => within(row.value, row.valueHalf, amount), exact: (row) => within(row.value, row.valueHalf, exact), raw: (row) => row.value },
    { key: 'own', title: 'Itself', isNumber: true, width: isSampled ? 12 : 7, text: (row) => within(row.self, row.selfHalf, amount), exact: (row) => within(row.self, row.selfHalf, exact), raw: (row) => row.self },
  ];
  return (
    <Table
      label={`${file.name} call tree`} columns={columns} tree={tree} rowKey={(row) => row.id} selected={address.select} onSelect={(row) => !row.isRest && go({ select: row.id }, true)}
      onActivate={(row) => !row.isRest && go({ view: 'flame', root: row.id, focus: '' })} canOpen={(row) => row.hasChildren} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)}
      isOld={isLoading} empty={error ? error.message : 'Nothing is left by the filters.'}
      tools={(
        <>
          <select aria-label="Call tree counts" value={value} onChange={(event) => go({ value: event.currentTarget.value, select: '' })}>
            {FLAME_VALUES.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
          </select>
          <div class="switch" role="group" aria-label="Direction">
            <button type="button" aria-pressed={direction === 'top-down'} title="From the program's start to what it calls" onClick={() => go({ direction: 'top-down', root: '', select: '' })}>Callees</button>
            <button type="button" aria-pressed={direction === 'bottom-up'} title="From who allocates to the callers" onClick={() => go({ direction: 'bottom-up', root: '', select: '' })}>Callers</button>
          </div>
          <label class="check" title="Functions that call themselves are one row"><input type="checkbox" checked={address.recursion} onChange={() => go({ recursion: !address.recursion, root: '', select: '' })} /> collapse recursion</label>
          <LibrarySwitch />
          <LineSwitch />
          <CollapsedImages />
          {layout && <span class="quiet" title={within(layout.total, data?.total_plus_minus, exact)}>{within(layout.total, data?.total_plus_minus, amount)} in all; a double click shows a row as a flame graph</span>}
        </>
      )}
    />
  );
}
