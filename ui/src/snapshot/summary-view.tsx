/** Objects by constructor; a class opens to its objects, an object to its references. */
import { useEffect } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { answer } from '../api/use-answer';
import type { ClassRow, EdgeRow, HeapObject, RowsAnswer } from '../api/types';
import { Search } from '../frame/search';
import { emptyText } from '../table/empty-text';
import { Table } from '../table/table';
import { useTree } from '../table/use-tree';
import { type HeapRow, heapColumns, isClass } from './object-columns';
import { type SnapshotViewProps, showObject } from './view-props';

const KINDS: [string, string][] = [
  ['', 'All objects'], ['duplicated-strings', 'Duplicated strings'], ['detached-nodes', 'Objects retained by detached nodes'], ['console', 'Objects retained by the console'],
  ['event-handlers', 'Objects retained by event handlers'], ['contexts', 'Objects retained by contexts'], ['shared-context', 'Shared context'], ['no-context', 'No context'],
];

export function SummaryView({ file, files, totalBytes, onCommand }: SnapshotViewProps) {
  const address = useAddress();
  const kind = address.kind[0] ?? '';
  const between = address.kind[1] ?? '';
  const filter: Record<string, unknown> = kind === '' ? {} : { kind: [kind] };
  const [side, number] = between.split(':');
  if (side === 'after' && number !== undefined) filter['allocated_after'] = Number(number);
  if (side === 'before' && number !== undefined) filter['allocated_before'] = Number(number);
  const sort = address.sort || 'retained';
  const body = { file: file.file, filter, sort, descending: !address.ascending, match: address.match };
  const { tree, isLoading } = useTree<HeapRow>(JSON.stringify(body), async (parent, offset, limit, signal) => {
    if (parent === null) {
      const classes = await answer<RowsAnswer<ClassRow>>('/api/snapshot/summary', { ...body, offset, limit }, signal);
      onCommand(classes.command ?? null);
      return { rows: classes.rows, count: classes.row_count };
    }
    const page = isClass(parent)
      ? await answer<RowsAnswer<HeapObject>>('/api/snapshot/objects', { file: file.file, filter, class_key: parent.class_key, sort: sort === 'count' ? 'retained' : sort, descending: !address.ascending, offset, limit, match: '' }, signal)
      : await answer<RowsAnswer<EdgeRow>>('/api/snapshot/containment', { file: file.file, id: parent.id, sort: 'retained', offset, limit }, signal);
    return { rows: page.rows, count: page.row_count };
  });
  useEffect(() => () => onCommand(null), []);
  const others = files.filter((other) => other.kind === file.kind && other !== file);
  return (
    <Table
      label={`${file.name} summary`} columns={heapColumns({ title: 'Constructor', totalBytes, nativeBytes: file.snapshot?.native_bytes, isSorted: true })} tree={tree}
      rowKey={(row) => (row.id === undefined ? `class ${row.class_key ?? ''}` : `@${row.id}`)} selected={address.object >= 0 ? `@${address.object}` : ''}
      onSelect={(row) => showObject(row.id)} canOpen={(row) => isClass(row) || (row.child_count ?? 0) > 0} sort={sort} descending={!address.ascending}
      onSort={(key, descending) => go({ sort: key === 'retained' ? '' : key, ascending: !descending })} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)}
      isOld={isLoading} empty={emptyText(address.match, 'No class is left by the filters.')}
      tools={(
        <>
          <Search value={address.match} onChange={(match) => go({ match }, true)} label="Class filter" />
          <select aria-label="Objects" value={kind} onChange={(event) => go({ kind: [event.currentTarget.value, between] })}>
            {KINDS.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
          </select>
          {others.length > 0 && (
            <select aria-label="Allocated" value={between} onChange={(event) => go({ kind: [kind, event.currentTarget.value] })}>
              <option value="">allocated at any time</option>
              {others.map((other) => <option key={`a${other.file}`} value={`after:${other.file}`}>allocated after {other.name}</option>)}
              {others.map((other) => <option key={`b${other.file}`} value={`before:${other.file}`}>allocated before {other.name}</option>)}
            </select>
          )}
        </>
      )}
    />
  );
}
