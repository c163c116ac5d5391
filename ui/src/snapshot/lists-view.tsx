/** Lists that DevTools does not have, each with the contents of the command of its name. */
import { useEffect, useState } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { answer } from '../api/use-answer';
import { formatCount } from '../format';
import type { Column } from '../table/columns';
import { Table } from '../table/table';
import { useTold } from '../table/use-told';
import { useTree } from '../table/use-tree';
import { LISTS, type ListRow, listColumns, sortedRows } from './list-columns';
import { type SnapshotViewProps, showObject } from './view-props';

const MOST_ROWS = 10_000;

export function ListsView({ file, onCommand }: SnapshotViewProps) {
  const address = useAddress();
  const list = LISTS.find(({ key }) => key === address.list) ?? LISTS[0]!;
  const [columns, setColumns] = useState<Column<ListRow>[]>(() => listColumns(list, []));
  const [isCut, setCut] = useTold(false);
  const { sort, ascending } = address;
  const { tree, isLoading } = useTree<ListRow>(`${list.key} ${file.file} ${sort} ${ascending}`, async (_, offset, limit, signal) => {
    const page = await answer<{ rows: ListRow[]; command?: string | null; is_cut?: boolean }>(`/api/snapshot/${list.key}`, { file: file.file, top: MOST_ROWS }, signal);
    onCommand(page.command ?? null);
    setCut(page.is_cut === true);
    if (offset === 0) setColumns(listColumns(list, page.rows));
    const rows = sortedRows(page.rows, sort, ascending);
    return { rows: rows.slice(offset, offset + limit), count: rows.length };
  });
  useEffect(() => () => onCommand(null), []);
  return (
    <Table
      label={`${file.name} ${list.key}`} columns={columns} tree={tree} rowKey={(row) => JSON.stringify(row)} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)}
      onSelect={(row) => { const id = row['id'] ?? row['example_id']; if (typeof id === 'number') showObject(id); }} isOld={isLoading} empty="None."
      sort={sort} descending={!ascending} onSort={(key, descending) => go({ sort: key, ascending: !descending })}
      tools={(
        <>
          <select aria-label="List" value={list.key} onChange={(event) => go({ list: event.currentTarget.value, hidden: [], sort: '', ascending: false })}>
            {LISTS.map(({ key, title }) => <option key={key} value={key}>{title}</option>)}
          </select>
          <span class="quiet">{list.help}{isCut && `; there are more than these ${formatCount(MOST_ROWS)}, see the command`}</span>
        </>
      )}
    />
  );
}
