/** Search for objects by class, name, string or id. */
import { useEffect, useState } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { answer } from '../api/use-answer';
import type { RowsAnswer } from '../api/types';
import { Search } from '../frame/search';
import { Table } from '../table/table';
import { useTree } from '../table/use-tree';
import { type HeapRow, heapColumns } from './object-columns';
import { type SnapshotViewProps, showObject } from './view-props';

const PLACES: [string, string][] = [['any', 'anywhere'], ['class', 'in classes'], ['name', 'in names'], ['string', 'in strings']];

export function SearchView({ file, totalBytes, onCommand }: SnapshotViewProps) {
  const address = useAddress();
  const where = PLACES.find(([key]) => key === address.group)?.[0] ?? 'any';
  const [isCut, setCut] = useState(false);
  const { tree, isLoading } = useTree<HeapRow>(`${file.file} ${where} ${address.match}`, async (parent, offset, limit, signal) => {
    if (parent !== null) {
      const page = await answer<RowsAnswer<HeapRow>>('/api/snapshot/containment', { file: file.file, id: parent.id, sort: 'retained', offset, limit }, signal);
      return { rows: page.rows, count: page.row_count };
    }
    if (address.match.trim() === '') return { rows: [], count: 0 };
    const page = await answer<RowsAnswer<HeapRow>>('/api/snapshot/search', { file: file.file, text: address.match, in: where, offset, limit }, signal);
    setCut(page.is_cut === true);
    onCommand(page.command ?? null);
    return { rows: page.rows, count: page.row_count };
  });
  useEffect(() => () => onCommand(null), []);
  return (
    <Table
      label={`${file.name} search`} columns={heapColumns({ title: 'Object', totalBytes, nativeBytes: file.snapshot?.native_bytes })} tree={tree} rowKey={(row) => `@${row.id ?? ''}`} selected={address.object >= 0 ? `@${address.object}` : ''}
      onSelect={(row) => showObject(row.id)} canOpen={(row) => (row.child_count ?? 0) > 0} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)} isOld={isLoading}
      empty={address.match === '' ? 'Type a class, a name, a piece of a string, or an id such as @119915.' : 'Nothing matches.'}
      tools={(
        <>
          <Search value={address.match} onChange={(match) => go({ match }, true)} label="Search the heap, or @id" waitMs={250} />
          <select aria-label="Search where" value={where} onChange={(event) => go({ group: event.currentTarget.value })}>
            {PLACES.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
          </select>
          {isCut && <span class="quiet">the first matches only</span>}
        </>
      )}
    />
  );
}
