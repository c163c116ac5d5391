/** Columns of objects of a JavaScript heap, as DevTools names and orders them. */
import type { HeapObject } from '../api/types';
import { exactBytes, formatBytes, formatCount, formatPercent } from '../format';
import type { Column } from '../table/columns';

/** Row of any tree: a class, an object, or an edge that leads to one. */
export interface HeapRow extends Partial<HeapObject> {
  /** Key of a class; only in rows of classes. */
  class_key?: string;
  place?: string | null;
  object_count?: number;
  edge?: string;
  edge_type?: string;
  change?: 'new' | 'deleted';
}

/**
 * Formats DevTools' distance: system roots count from 100,000,000; unreachable objects have no
 * distance.
 */
export function distanceText(distance: number | undefined): string {
  if (distance === undefined || distance < 0) return '–';
  return distance >= 100_000_000 ? `${formatCount(distance - 100_000_000)}+` : formatCount(distance);
}

export function isClass(row: HeapRow): boolean {
  return row.class_key !== undefined && row.id === undefined;
}

export function rowName(row: HeapRow): string {
  return isClass(row) ? (row.class ?? '') : `${row.edge !== undefined ? `${row.edge} :: ` : ''}${row.name ?? row.class ?? ''} @${row.id ?? ''}`;
}

/** Name of an edge: `[3]`, `.name`, `context.x`. */
function EdgeName({ row }: { row: HeapRow }) {
  if (row.edge === undefined) return null;
  return (
    <>
      <span class={`edge is-${row.edge_type ?? ''}`} title={row.edge_type}>{row.edge}</span>
      <span class="quiet">::</span>
    </>
  );
}

export function HeapName({ row }: { row: HeapRow }) {
  if (isClass(row)) {
    return (
      <span class="heap-name">
        <span class="class-name">{row.class}</span>
        <span class="quiet">×{formatCount(row.object_count ?? 0)}</span>
        {row.place && <span class="quiet place-tail">{row.place}</span>}
      </span>
    );
  }
  const isText = row.type === 'string' || row.type === 'concatenated string' || row.type === 'sliced string';
  return (
    <span class="heap-name">
      {row.change && <span class={`badge is-${row.change}`}>{row.change}</span>}
      <EdgeName row={row} />
      <span class={isText ? 'text-value' : 'object-name'}>{isText ? `"${row.name ?? ''}"` : row.name || row.class}</span>
      <span class="quiet">@{row.id}</span>
      {row.dom_state === 'detached' && <span class="badge is-detached">detached</span>}
    </span>
  );
}

interface HeapColumnOptions {
  title: string;
  totalBytes: number;
  /** Native memory of the whole heap; null if it has none. */
  nativeBytes?: number | null | undefined;
  /** Whether columns have sort keys of the server, because the table can be sorted. */
  isSorted?: boolean;
}

export function heapColumns({ title, totalBytes, nativeBytes = null, isSorted = false }: HeapColumnOptions): Column<HeapRow>[] {
  const size = (key: 'shallow_bytes' | 'retained_bytes', head: string, help: string, sort: string): Column<HeapRow> => ({
    key, title: head, help, isNumber: true, width: 10.8, ...(isSorted ? { sort } : {}),
    text: (row) => formatBytes(row[key] ?? 0), exact: (row) => exactBytes(row[key] ?? 0), raw: (row) => row[key] ?? 0,
    cell: (row) => (
      <>
        {formatBytes(row[key] ?? 0)} <span class="percent-tail">{formatPercent(row[key] ?? 0, totalBytes)}</span>
      </>
    ),
  });
  return [
    { key: 'name', title, width: 0, text: rowName, cell: (row) => <HeapName row={row} />, ...(isSorted ? { sort: 'name' } : {}) },
    {
      key: 'distance', title: 'Distance', help: 'Steps from the window or global object; with + from the root, where no global leads', isNumber: true, width: 5.5,
      ...(isSorted ? { sort: 'distance' } : {}), text: (row) => distanceText(row.distance), raw: (row) => row.distance ?? '',
    },
    { key: 'count', title: 'Objects', isNumber: true, width: 6, isExtra: true, text: (row) => (row.object_count === undefined ? '' : formatCount(row.object_count)), ...(isSorted ? { sort: 'count' } : {}) },
    size('shallow_bytes', 'Shallow Size', 'What the object itself takes', 'shallow'),
    size('retained_bytes', 'Retained Size', 'What would be freed with it', 'retained'),
    ...(nativeBytes === null ? [] : [nativeColumn(nativeBytes)]),
  ];
}

/** Native memory, a part of the retained size; percentages are of all native memory. */
function nativeColumn(nativeBytes: number): Column<HeapRow> {
  const text = ({ native_bytes: bytes }: HeapRow) => (bytes === undefined ? 'unknown' : bytes === 0 ? '–' : formatBytes(bytes));
  return {
    key: 'native_bytes', title: 'Native', help: 'Of the retained size: memory outside of the managed heap that would be freed with it', isNumber: true, width: 9.4, text,
    exact: (row) => (typeof row.native_bytes === 'number' ? exactBytes(row.native_bytes) : 'unknown'), raw: (row) => row.native_bytes ?? '',
    cell: (row) => <>{text(row)} {row.native_bytes ? <span class="percent-tail">{formatPercent(row.native_bytes, nativeBytes)}</span> : null}</>,
  };
}
