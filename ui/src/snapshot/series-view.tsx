/**
 * Series of snapshots side by side: objects and retained size of each class, steady growth first.
 */
import { useEffect } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { go, useAddress } from '../address/use-address';
import { answer } from '../api/use-answer';
import type { ClassSeriesRow, HeapObject, OpenFile, RowsAnswer } from '../api/types';
import { Curve } from '../canvas/curve';
import { exactBytes, formatBytes, formatCount, formatPercent, formatSignedBytes, formatSignedCount, plural } from '../format';
import { SameSwitch } from '../frame/same-switch';
import { Search } from '../frame/search';
import type { Column } from '../table/columns';
import { Table } from '../table/table';
import { useTree } from '../table/use-tree';
import { HeapName, type HeapRow, rowName } from './object-columns';
import { showObject } from './view-props';

type SeriesRow = HeapRow & Partial<ClassSeriesRow>;

interface SeriesProps {
  /** Snapshot in which a class opens to its objects. */
  file: OpenFile;
  /** All snapshots, in order of time. */
  all: OpenFile[];
  tools: ComponentChildren;
  onCommand: (command: string | null) => void;
}

export function SeriesView({ file, all, tools, onCommand }: SeriesProps) {
  const address = useAddress();
  const sort = address.sort || 'steady';
  const files = all.map((one) => one.file);
  const own = files.indexOf(file.file);
  const body = { files, sort, descending: !address.ascending, match: address.match, same: address.same };
  const { tree, isLoading } = useTree<SeriesRow>(`${own} ${JSON.stringify(body)}`, async (parent, offset, limit, signal) => {
    if (parent === null) {
      const classes = await answer<RowsAnswer<ClassSeriesRow>>('/api/snapshot/series', { ...body, offset, limit }, signal);
      onCommand(classes.command ?? null);
      return { rows: classes.rows, count: classes.row_count };
    }
    const page = await answer<RowsAnswer<HeapObject>>('/api/snapshot/objects', { file: file.file, class_key: parent.class_keys?.[own], sort: 'retained', offset, limit }, signal);
    return { rows: page.rows, count: page.row_count };
  });
  useEffect(() => () => onCommand(null), []);
  return (
    <Table
      label={`${file.name} series`} columns={seriesColumns(all, own)} tree={tree} rowKey={(row) => (row.id === undefined ? `class ${row.class ?? ''} ${row.place ?? ''}` : `@${row.id}`)}
      onSelect={(row) => showObject(row.id)} selected={address.object >= 0 ? `@${address.object}` : ''} canOpen={(row) => typeof row.class_keys?.[own] === 'string'} sort={sort} descending={!address.ascending}
      onSort={(key, descending) => go({ sort: key === 'steady' ? '' : key, ascending: !descending })} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)}
      isOld={isLoading} empty={address.match === '' ? 'No difference.' : 'No class of this name differs.'}
      tools={(
        <>
          {tools}
          <Search value={address.match} onChange={(match) => go({ match }, true)} label="Class filter" />
          <SameSwitch title="Also classes that are the same in all snapshots" />
          <span class="quiet">a class opens to its objects in {file.name}</span>
        </>
      )}
    />
  );
}

/** Largest number of snapshots whose columns are all shown; of more they are chosen one by one. */
const MOST_SHOWN = 8;

function seriesColumns(all: OpenFile[], own: number): Column<SeriesRow>[] {
  const change = (key: 'growth_bytes' | 'count_growth', title: string, help: string, sort: string, shown: (value: number) => string): Column<SeriesRow> => ({
    key, title, help, isNumber: true, width: 7.2, sort, text: (row) => (row[key] === undefined ? '' : shown(row[key])),
    exact: (row) => (row[key] === undefined ? '' : key === 'growth_bytes' ? exactBytes(row[key]) : formatSignedCount(row[key])), raw: (row) => row[key] ?? '',
    cell: (row) => (row[key] === undefined ? null : <span class={row[key] > 0 ? 'is-more' : row[key] < 0 ? 'is-less' : ''}>{shown(row[key])}</span>),
  });
  return [
    {
      key: 'class', title: 'Constructor', width: 0, sort: 'name', text: rowName,
      cell: (row) => (row.class_keys ? <span class="heap-name"><span class="class-name">{row.class}</span>{row.place && <span class="quiet place-tail">{row.place}</span>}</span> : <HeapName row={row} />),
    },
    { key: 'course', title: 'Course', help: 'Retained size from the first snapshot to the last; in this order, what grew most and steadily comes first', width: 6, sort: 'steady', text: (row) => sizesOf(row).map(formatBytes).join(' '), exact: (row) => sizesOf(row).map(formatBytes).join(' → '), cell: (row) => (row.class_keys ? <Curve values={sizesOf(row)} /> : null) },
    {
      key: 'steadiness', title: 'Steady', help: '100 %: it grew from each snapshot to the next; less where it stood still, shrank in between or grew in one leap', isNumber: true, width: 5.2, sort: 'steadiness',
      text: (row) => (row.steadiness ? formatPercent(row.steadiness, 1) : ''), raw: (row) => row.steadiness ?? '',
    },
    change('growth_bytes', 'Growth', 'Retained size in the last snapshot less that in the first', 'growth', formatSignedBytes),
    change('count_growth', '# Growth', 'Objects in the last snapshot less those in the first', 'count_growth', formatSignedCount),
    ...all.map((one, at): Column<SeriesRow> => ({
      key: `at_${one.file}`, title: one.name.replace(/\.heapsnapshot$|\.heaptimeline$/, ''), help: `${one.name}: retained size and number of objects`, isNumber: true, width: 11.2, sort: String(at), isExtra: all.length > MOST_SHOWN && at !== own,
      text: (row) => {
        if (!row.class_keys) return at === own ? formatBytes(row.retained_bytes ?? 0) : '';
        return countIn(row, at) === 0 ? '–' : `${formatBytes(sizeIn(row, at))} ×${formatCount(countIn(row, at))}`;
      },
      exact: (row) => {
        if (!row.class_keys) return at === own ? exactBytes(row.retained_bytes ?? 0) : '';
        return `${exactBytes(sizeIn(row, at))} retained, ${exactBytes(row.shallow_bytes_at?.[at] ?? 0)} shallow, ${plural(countIn(row, at), 'object')}`;
      },
      raw: (row) => (row.class_keys ? sizeIn(row, at) : at === own ? (row.retained_bytes ?? 0) : ''),
      cell: (row) => {
        if (!row.class_keys) return at === own ? formatBytes(row.retained_bytes ?? 0) : null;
        return countIn(row, at) === 0 ? <span class="quiet">–</span> : <>{formatBytes(sizeIn(row, at))} <span class="quiet">×{formatCount(countIn(row, at))}</span></>;
      },
    })),
  ];
}

function sizesOf(row: SeriesRow): number[] {
  return row.retained_bytes_at ?? [];
}

function sizeIn(row: SeriesRow, at: number): number {
  return row.retained_bytes_at?.[at] ?? 0;
}

function countIn(row: SeriesRow, at: number): number {
  return row.object_count_at?.[at] ?? 0;
}
