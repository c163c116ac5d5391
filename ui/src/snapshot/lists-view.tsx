/** Lists that DevTools does not have: each as the command of its name gives it, whatever its columns are. */
import { useEffect } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { answer } from '../api/use-answer';
import { exactBytes, formatBytes, formatCount } from '../format';
import { useState } from 'preact/hooks';
import type { Column } from '../table/columns';
import { Table } from '../table/table';
import { useTree } from '../table/use-tree';
import { type SnapshotViewProps, showObject } from './snapshot-page';

type ListRow = Record<string, unknown>;

const LISTS: [string, string][] = [
  ['strings', 'Strings that are there more than once'], ['collections', 'Collections, the largest first'], ['shapes', 'Shapes of objects'], ['fanout', 'Objects with most references'],
  ['detached', 'Detached DOM nodes'], ['unreachable', 'Unreachable objects'], ['closures', 'Closures and what they hold'],
];
const MOST_ROWS = 10_000;

export function ListsView({ file, onCommand }: SnapshotViewProps) {
  const address = useAddress();
  const list = LISTS.find(([key]) => key === address.list)?.[0] ?? 'strings';
  const [columns, setColumns] = useState<Column<ListRow>[]>([]);
  const { tree, isLoading } = useTree<ListRow>(`${list} ${file.file}`, async (_, offset, limit, signal) => {
    const page = await answer<{ rows: ListRow[]; command?: string | null }>(`/api/snapshot/${list}`, { file: file.file, top: MOST_ROWS }, signal);
    onCommand(page.command ?? null);
    setColumns(columnsOf(page.rows));
    return { rows: page.rows.slice(offset, offset + limit), count: page.rows.length };
  });
  useEffect(() => () => onCommand(null), []);
  return (
    <Table
      label={`${file.name} ${list}`} columns={columns} tree={tree} rowKey={(row) => JSON.stringify(row)} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)}
      onSelect={(row) => { const id = row['id'] ?? row['example_id']; if (typeof id === 'number') showObject(id); }} isOld={isLoading} empty="None."
      tools={(
        <select aria-label="List" value={list} onChange={(event) => go({ list: event.currentTarget.value, hidden: [] })}>
          {LISTS.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
        </select>
      )}
    />
  );
}

/** A column for each key: numbers right, sizes in KiB, lists and objects as their texts. */
function columnsOf(rows: ListRow[]): Column<ListRow>[] {
  const keys = [...new Set(rows.slice(0, 50).flatMap((row) => Object.keys(row)))];
  const widest = ['text', 'name', 'value', 'fields', 'class'].find((key) => keys.includes(key)) ?? keys[0];
  return keys.map((key): Column<ListRow> => {
    const isNumber = rows.some((row) => typeof row[key] === 'number') && !key.endsWith('id');
    const isBytes = isNumber && (key.endsWith('bytes') || key.endsWith('size'));
    return {
      key, title: key.replace(/_(bytes|count)$/, '').replaceAll('_', ' '), isNumber, width: key === widest ? 0 : isNumber ? 7 : 14,
      text: (row) => valueText(row[key], isBytes), raw: (row) => { const value = row[key]; return typeof value === 'number' ? value : valueText(value, false); },
      exact: (row) => { const value = row[key]; return isBytes && typeof value === 'number' ? exactBytes(value) : valueText(value, false); },
    };
  });
}

function valueText(value: unknown, isBytes: boolean): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return isBytes ? formatBytes(value) : formatCount(value);
  if (Array.isArray(value)) return value.map((item) => valueText(item, false)).join(', ');
  if (typeof value === 'object') return Object.values(value).map((item) => valueText(item, false)).join(' ');
  return String(value);
}
