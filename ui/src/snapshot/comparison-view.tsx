/**
 * Comparison with another snapshot: new, deleted and remaining objects by class. A class opens to
 * its new and deleted objects. Three or more snapshots are shown side by side.
 */
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { answer } from '../api/use-answer';
import type { ClassDiffRow, OpenFile, RowsAnswer } from '../api/types';
import { exactBytes, formatBytes, formatCount, formatSignedBytes, formatSignedCount } from '../format';
import { Message } from '../frame/message';
import { Search } from '../frame/search';
import type { Column } from '../table/columns';
import { emptyText } from '../table/empty-text';
import { Table } from '../table/table';
import { useTold } from '../table/use-told';
import { useTree } from '../table/use-tree';
import { HeapName, type HeapRow, isClass, rowName } from './object-columns';
import { SeriesView } from './series-view';
import { type SnapshotViewProps, showObject } from './view-props';

type DiffRow = HeapRow & Partial<ClassDiffRow>;

function deletedClass(row: DiffRow): string {
  return row.change === 'deleted' ? 'is-deleted' : '';
}

export function ComparisonView({ file, files, onCommand }: SnapshotViewProps) {
  const address = useAddress();
  const others = files.filter((other) => other.kind === file.kind && other !== file);
  const chosen = others.find((other) => other.file === address.before);
  const earlier = chosen ?? others.filter((other) => other.file < file.file).at(-1);
  // The first of the given snapshots is compared with the next one, as the one before.
  const [before, after] = earlier ? (address.after === earlier.file ? [file, earlier] : [earlier, file]) : [file, others[0]];
  if (!before || !after) return <Message kind="note">A comparison needs a second snapshot: <code>heapr view BEFORE.heapsnapshot {file.name}</code></Message>;
  const all = files.filter((other) => other.kind === file.kind && other.state !== 'failed');
  const isSeries = all.length > 2 && address.picture === 'series';
  const show = (picture: string) => go({ picture, sort: '', ascending: false, hidden: [] });
  const tools = all.length > 2 && (
    <div class="switch" role="group" aria-label="Compared">
      <button type="button" aria-pressed={!isSeries} onClick={() => show('table')}>Two snapshots</button>
      <button type="button" aria-pressed={isSeries} title="Each class in each snapshot, what grew steadily first" onClick={() => show('series')}>All {formatCount(all.length)}</button>
    </div>
  );
  if (isSeries) return <SeriesView file={file} all={all} tools={tools} onCommand={onCommand} />;
  return <Comparison key={`${before.file} ${after.file}`} before={before} after={after} others={others} file={file} tools={tools} onCommand={onCommand} />;
}

interface ComparisonProps extends Pick<SnapshotViewProps, 'file' | 'onCommand'> {
  /** The shown snapshot is one of both. */
  before: OpenFile;
  after: OpenFile;
  others: SnapshotViewProps['files'];
  tools: ComponentChildren;
}

function Comparison({ before, after, others, file, tools, onCommand }: ComparisonProps) {
  const address = useAddress();
  const [warnings, setWarnings] = useTold<string[]>([]);
  const [byAddress, setByAddress] = useTold<number | null>(null);
  const isBefore = before === file;
  const other = isBefore ? after : before;
  const compare = (file: number, isAfter: boolean) => go({ before: file, after: isAfter ? file : -1 });
  const sort = address.sort || 'bytes_delta';
  const body = { before: before.file, after: after.file, sort, descending: !address.ascending, match: address.match };
  const { tree, isLoading } = useTree<DiffRow>(JSON.stringify(body), async (parent, offset, limit, signal) => {
    if (parent === null) {
      const classes = await answer<RowsAnswer<ClassDiffRow>>('/api/snapshot/diff', { ...body, offset, limit }, signal);
      onCommand(classes.command ?? null);
      setWarnings(classes.warnings ?? []);
      setByAddress(classes.by_address_count ?? null);
      return { rows: classes.rows, count: classes.row_count };
    }
    const page = await answer<RowsAnswer<HeapRow>>('/api/snapshot/diff-objects', { before: before.file, after: after.file, class_key: parent.class_key, offset, limit }, signal);
    return { rows: page.rows, count: page.row_count };
  });
  useEffect(() => () => onCommand(null), []);
  const number = (key: 'new_count' | 'deleted_count' | 'count_delta' | 'new_bytes' | 'deleted_bytes' | 'bytes_delta' | 'refilled_count', title: string, help: string): Column<DiffRow> => {
    const isBytes = key.includes('bytes');
    const isDelta = key.endsWith('delta');
    const shown = (row: DiffRow) => {
      if (!isClass(row)) {
        if (isBytes && !isDelta) return (key === 'new_bytes') === (row.change === 'new') ? formatBytes(row.shallow_bytes ?? 0) : '';
        return '';
      }
      const value = row[key] ?? 0;
      if (isDelta) return isBytes ? formatSignedBytes(value) : formatSignedCount(value);
      return isBytes ? formatBytes(value) : formatCount(value);
    };
    return {
      key, title, help, isNumber: true, width: 7, sort: key, text: shown, exact: (row) => (isBytes && isClass(row) ? exactBytes(row[key] ?? 0) : shown(row)), raw: (row) => row[key] ?? '',
      cell: (row) => <span class={isDelta && (row[key] ?? 0) > 0 ? 'is-more' : isDelta && (row[key] ?? 0) < 0 ? 'is-less' : ''}>{shown(row)}</span>,
    };
  };
  const columns: Column<DiffRow>[] = [
    { key: 'class', title: 'Constructor', width: 0, sort: 'name', text: rowName, cell: (row) => (isClass(row) ? <span class="heap-name"><span class="class-name">{row.class}</span>{row.place && <span class="quiet place-tail">{row.place}</span>}</span> : <HeapName row={row} />) },
    number('new_count', '# New', 'Objects that are only in this snapshot'), number('deleted_count', '# Deleted', 'Objects that are only in the one before'), number('count_delta', '# Delta', 'New less deleted'),
    number('new_bytes', 'Alloc. Size', 'Shallow size of what is new'), number('deleted_bytes', 'Freed Size', 'Shallow size of what is gone'), number('bytes_delta', 'Size Delta', 'Allocated less freed'),
    ...(byAddress === null ? [] : [number('refilled_count', 'Other contents', 'At the same address, and nothing is left of the contents that the earlier one had: another object, or the same one filled anew')]),
  ];
  return (
    <>
      {warnings.map((warning) => <Message key={warning} kind="warning">{warning}</Message>)}
      <Table
        label={`${file.name} comparison`} columns={columns} tree={tree} rowKey={(row) => (row.id === undefined ? `class ${row.class_key ?? ''}` : `@${row.id}`)}
        onSelect={(row) => row.change !== (isBefore ? 'new' : 'deleted') && showObject(row.id)} selected={address.object >= 0 ? `@${address.object}` : ''} canOpen={isClass} sort={sort} descending={!address.ascending}
        onSort={(key, descending) => go({ sort: key === 'bytes_delta' ? '' : key, ascending: !descending })} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)}
        isOld={isLoading} rowClass={deletedClass} empty={emptyText(address.match, 'No difference.')}
        tools={(
          <>
            {tools}
            <Search value={address.match} onChange={(match) => go({ match }, true)} label="Class filter" />
            <label>
              {isBefore ? 'After' : 'Before'}{' '}
              <select aria-label="Compared with" value={other.file} onChange={(event) => compare(Number(event.currentTarget.value), isBefore)}>
                {others.map((one) => <option key={one.file} value={one.file}>{one.name}</option>)}
              </select>
            </label>
            <button type="button" class="button" title="Exchange before and after" onClick={() => compare(other.file, !isBefore)}>⇄ Turn</button>
            <span class="quiet">{before.name} → {after.name}{byAddress !== null && `; ${formatCount(byAddress)} told by address and class alone`}</span>
          </>
        )}
      />
    </>
  );
}
