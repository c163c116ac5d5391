/** Columns shared by the tables of native snapshots. */
import type { Filter, NativeSnapshot, OpenFile } from '../api/types';
import { exactBytes, formatBytes, formatCount, formatDuration, formatSignedBytes, formatSignedCount } from '../format';
import type { Column } from '../table/columns';
import { amountText, exactAmount, withHalf } from '../trace/estimate';
import { NamedStack } from '../trace/stack-name';

export const GROUPS: [string, string][] = [['stacks', 'by stack'], ['frames', 'by frame'], ['images', 'by image']];

/** Returns the filter without fields for a span of time: a snapshot is one moment. */
export function momentFilter(filter: Filter): Filter {
  const rest = { ...filter };
  delete rest.range;
  delete rest.at;
  delete rest.temporary;
  delete rest.type;
  delete rest.snapshot;
  return rest;
}

/** Returns the title of a snapshot in a list. */
export function snapshotTitle(snapshot: NativeSnapshot): string {
  return `${snapshot.number}${snapshot.name ? ` ${snapshot.name}` : ''}: ${formatDuration(snapshot.time_ns)}, ${amountText(snapshot, 'block_bytes')} (${snapshot.trigger})`;
}

/** Returns the snapshots of a file, oldest first. */
export function snapshotsOf(file: OpenFile): NativeSnapshot[] {
  return [...(file.trace?.snapshots ?? [])].sort((a, b) => a.time_ns - b.time_ns || a.number - b.number);
}

export function stackColumn<Row extends { frames: string[]; own?: number | null }>(by: string): Column<Row> {
  return {
    key: by.replace(/s$/, ''), title: { frames: 'Frame', images: 'Image' }[by] ?? 'Stack', width: 0,
    text: (row) => row.frames.join(' ← '), exact: (row) => row.frames.join('\n'), cell: (row) => <NamedStack names={row.frames} own={row.own} />,
  };
}

type Numbers<Row> = { [Key in keyof Row]: Row[Key] extends number | null ? Key : never }[keyof Row] & string;

export function bytesColumn<Row>(key: Numbers<Row>, title: string, help: string, sort?: string): Column<Row> {
  const value = (row: Row) => row[key] as number | null;
  return {
    key, title, help, isNumber: true, width: 6.8, ...(sort === undefined ? {} : { sort }),
    text: (row) => (value(row) === null ? '' : amountText(row as object, key)),
    exact: (row) => exactAmount(row as object, key), raw: (row) => value(row) ?? '',
  };
}

export function countColumn<Row>(key: Numbers<Row>, title: string, help: string, sort?: string): Column<Row> {
  const value = (row: Row) => row[key] as number | null;
  return {
    key, title, help, isNumber: true, width: 6, ...(sort === undefined ? {} : { sort }),
    text: (row) => (value(row) === null ? '' : amountText(row as object, key)), raw: (row) => value(row) ?? '',
  };
}

/** Widens columns of amounts for the intervals of estimates. */
export function widened<Row>(columns: Column<Row>[], isSampled: boolean): Column<Row>[] {
  return isSampled ? columns.map((column) => (/(bytes|count|delta|per_hour)$/.test(column.key) && column.isNumber ? { ...column, width: 12 } : column)) : columns;
}

export function ageColumn<Row>(key: Numbers<Row>, title: string, help: string, sort?: string): Column<Row> {
  return {
    key, title, help, isNumber: true, width: 6.2, ...(sort === undefined ? {} : { sort }),
    text: (row) => formatDuration(row[key] as number), raw: (row) => row[key] as number,
  };
}

/** Column of a difference: red for growth, blue for shrinking. */
export function deltaColumn<Row>(key: Numbers<Row>, title: string, help: string, sort?: string): Column<Row> {
  const isBytes = key.startsWith('bytes') || key.endsWith('bytes');
  const value = (row: Row) => (row[key] as number | null) ?? 0;
  const text = (row: Row) => withHalf(row as object, key, isBytes ? formatSignedBytes : formatSignedCount, isBytes ? formatBytes : formatCount);
  return {
    key, title, help, isNumber: true, width: 7, ...(sort === undefined ? {} : { sort }), text,
    exact: (row) => (isBytes ? withHalf(row as object, key, exactBytes, exactBytes) : text(row)), raw: value,
    cell: (row) => <span class={value(row) > 0 ? 'is-more' : value(row) < 0 ? 'is-less' : ''}>{text(row)}</span>,
  };
}
