/** Columns of each list: names for the server's fields, the most important first. */
import { exactBytes, formatBytes, formatCount } from '../format';
import type { Column } from '../table/columns';

export type ListRow = Record<string, unknown>;

interface ListColumn {
  field: string;
  title: string;
  help?: string;
  /** Width in rem; 0 for the remaining width. */
  width?: number;
}

export interface List {
  key: string;
  title: string;
  /** Purpose of the rows. */
  help: string;
  columns: ListColumn[];
}

const RETAINED: ListColumn = { field: 'retained_bytes', title: 'Retained', help: 'What would be freed with it' };
const ID: ListColumn = { field: 'id', title: 'Object', width: 7.5 };
const EXAMPLE: ListColumn = { field: 'example_id', title: 'One of them', width: 7.5 };

export const LISTS: List[] = [
  { key: 'strings', title: 'Duplicated strings', help: 'Strings whose text is there more than once', columns: [
    { field: 'text', title: 'Text', width: 0 }, { field: 'count', title: 'Copies' }, { field: 'wasted_bytes', title: 'Wasted', help: 'What one copy would save' },
    { field: 'total_bytes', title: 'All copies' }, EXAMPLE,
  ] },
  { key: 'collections', title: 'Collections', help: 'Arrays, maps, sets and objects used as such, the largest first', columns: [
    { field: 'name', title: 'Collection', width: 0 }, { field: 'class', title: 'Class', width: 8 }, { field: 'reference_count', title: 'Elements' },
    { field: 'fill_percent', title: 'Filled', help: 'How much of its store is in use' }, { field: 'store_bytes', title: 'Store', help: 'What the collection itself takes' }, RETAINED, ID,
  ] },
  { key: 'shapes', title: 'Shapes', help: 'Objects with the same fields', columns: [
    { field: 'shape', title: 'Shape', width: 0 }, { field: 'count', title: 'Objects' }, { field: 'self_bytes', title: 'Shallow', help: 'What the objects themselves take' }, RETAINED, EXAMPLE,
  ] },
  { key: 'fanout', title: 'Most references', help: 'Objects that refer to many others', columns: [
    { field: 'name', title: 'Object', width: 0 }, { field: 'reference_count', title: 'References' }, { field: 'main_class', title: 'Most refer to', width: 12 },
    { field: 'main_class_count', title: 'Of them' }, RETAINED, ID,
  ] },
  { key: 'detached', title: 'Detached nodes', help: 'Nodes that are in no document any more, and what holds them', columns: [
    { field: 'node', title: 'Node', width: 18 }, { field: 'held_by', title: 'Held by', width: 0 }, { field: 'place', title: 'Place', width: 14 },
    { field: 'detached_count', title: 'Nodes', help: 'Detached nodes that hang on it' }, RETAINED, ID,
  ] },
  { key: 'unreachable', title: 'Unreachable', help: 'Objects that nothing leads to, and that are not collected yet', columns: [
    { field: 'class', title: 'Class', width: 0 }, { field: 'count', title: 'Objects' }, { field: 'self_bytes', title: 'Shallow' }, RETAINED, EXAMPLE,
  ] },
  { key: 'closures', title: 'Closures', help: 'Contexts of functions, and the variables that they keep alive', columns: [
    { field: 'place', title: 'Made at', width: 21 }, { field: 'variables', title: 'Variables kept', width: 0 }, { field: 'function_count', title: 'Functions', help: 'Functions that share the context' }, RETAINED, ID,
  ] },
  { key: 'pending', title: 'Pending', help: 'What waits: async functions, callbacks, timers, listeners, handles, stores', columns: [
    { field: 'kind', title: 'Waits as', width: 7 }, { field: 'what', title: 'Function or class', width: 0 }, { field: 'event', title: 'Event', width: 8 },
    { field: 'place', title: 'Place', width: 16 }, { field: 'held_by', title: 'Held by', width: 14 }, { field: 'count', title: 'How many' }, RETAINED, EXAMPLE,
  ] },
  { key: 'packages', title: 'Packages', help: 'Whose code fills the heap: npm packages, workspaces, the rest of the program', columns: [
    { field: 'name', title: 'Package', width: 0 }, { field: 'own_bytes', title: 'Own', help: 'Of objects that belong to its code' }, { field: 'own_percent', title: '%' },
    { field: 'object_count', title: 'Objects' }, RETAINED,
  ] },
];

/** Returns the columns of a list. Fields of its rows without a description come last, hidden. */
export function listColumns(list: List, rows: ListRow[]): Column<ListRow>[] {
  const present = new Set(rows.slice(0, 50).flatMap((row) => Object.keys(row)));
  const described = list.columns.filter((column) => present.size === 0 || present.has(column.field));
  const others = [...present].filter((field) => !list.columns.some((column) => column.field === field));
  return [
    ...described.map((column) => columnOf(column, rows)),
    ...others.map((field) => ({ ...columnOf({ field, title: wordsOf(field) }, rows), isExtra: true })),
  ];
}

/** Returns a field's name as words: `main_class_count`. */
function wordsOf(field: string): string {
  const words = field.replace(/_bytes$/, '').replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function columnOf({ field, title, help, width }: ListColumn, rows: ListRow[]): Column<ListRow> {
  const isId = field === 'id' || field.endsWith('_id');
  const isNumber = isId || rows.some((row) => typeof row[field] === 'number');
  const isBytes = field.endsWith('_bytes');
  const text = (row: ListRow) => {
    const value = row[field];
    if (typeof value !== 'number') return valueText(value);
    if (isId) return `@${value}`;
    if (isBytes) return formatBytes(value);
    return field.endsWith('_percent') ? `${value} %` : formatCount(value);
  };
  return {
    key: field, title, isNumber, sort: field, width: width ?? (isNumber ? 7 : 12), ...(help === undefined ? {} : { help }), text,
    raw: (row) => { const value = row[field]; return typeof value === 'number' ? value : valueText(value); },
    exact: (row) => { const value = row[field]; return isBytes && typeof value === 'number' ? exactBytes(value) : text(row); },
  };
}

/**
 * Sorts rows by a field, the largest first, texts from A on; unsorted without a field. The page has
 * the whole list, so that no request is needed.
 */
export function sortedRows(rows: ListRow[], field: string, ascending: boolean): ListRow[] {
  if (field === '') return rows;
  const compare = (one: ListRow, other: ListRow) => {
    const [a, b] = [one[field], other[field]];
    return typeof a === 'number' || typeof b === 'number' ? Number(b ?? 0) - Number(a ?? 0) : valueText(a).localeCompare(valueText(b));
  };
  const sorted = [...rows].sort(compare);
  return ascending ? sorted.reverse() : sorted;
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return formatCount(value);
  if (Array.isArray(value)) return value.map(valueText).join(', ');
  if (typeof value === 'object') return Object.values(value).map(valueText).join(' ');
  return String(value);
}
