/** Containment and Dominators: trees from the root, or from an object, loaded as they are opened. */
import { useEffect } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { answer } from '../api/use-answer';
import type { RowsAnswer } from '../api/types';
import { Table } from '../table/table';
import { useTree } from '../table/use-tree';
import { type HeapRow, heapColumns } from './object-columns';
import { type SnapshotViewProps, showObject } from './view-props';

export function TreeView({ kind, file, totalBytes, onCommand }: SnapshotViewProps & { kind: 'containment' | 'dominators' }) {
  const address = useAddress();
  const start = /^\d+$/.test(address.select) ? Number(address.select) : null;
  const { tree } = useTree<HeapRow>(`${kind} ${file.file} ${start ?? ''}`, async (parent, offset, limit, signal) => {
    const id = parent?.id ?? start ?? (kind === 'dominators' ? file.snapshot?.root_id ?? null : null);
    const fields = kind === 'containment' ? { sort: 'retained' } : {};
    const page = await answer<RowsAnswer<HeapRow>>(`/api/snapshot/${kind}`, { file: file.file, id, ...fields, offset, limit }, signal);
    if (parent === null) onCommand(page.command ?? null);
    return { rows: page.rows, count: page.row_count };
  });
  useEffect(() => () => onCommand(null), []);
  return (
    <Table
      label={`${file.name} ${kind}`} columns={heapColumns({ title: 'Object', totalBytes, nativeBytes: file.snapshot?.native_bytes })} tree={tree} rowKey={(row) => `@${row.id ?? ''}`}
      selected={address.object >= 0 ? `@${address.object}` : ''} onSelect={(row) => showObject(row.id)} canOpen={(row) => (row.child_count ?? 1) > 0}
      hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)}
      tools={(
        <>
          <span class="quiet">{start === null ? 'from the root' : `from @${start}`}</span>
          {start !== null && <button type="button" class="button" onClick={() => go({ select: '' })}>From the root</button>}
        </>
      )}
    />
  );
}
