/** Columns of tables, and rows as text and CSV. */
import type { ComponentChildren } from 'preact';

export interface Column<Row> {
  /** Unique in its table; also the name in a CSV file. */
  key: string;
  title: string;
  /** Meaning of the column, for the head's tooltip. */
  help?: string;
  /** Sort key of the server, if the table can be sorted by the column. */
  sort?: string;
  isNumber?: boolean;
  /** Width in rem; 0 for the remaining width. */
  width: number;
  /** Returns the cell as text. */
  text: (row: Row) => string;
  /** Returns the text shown on hover: exact numbers. */
  exact?: (row: Row) => string;
  /** Returns the value for a CSV file if it differs from the text: numbers without units. */
  raw?: (row: Row) => string | number;
  /** Returns the cell's element if it is more than text. */
  cell?: (row: Row) => ComponentChildren;
  /** Whether the column is shown only when chosen. */
  isExtra?: boolean;
}

/** Formats rows as aligned text, as the command line would print them. */
export function rowsAsText<Row>(columns: Column<Row>[], rows: Row[]): string {
  const cells = [columns.map((column) => column.title), ...rows.map((row) => columns.map((column) => oneLine(column.text(row))))];
  const widths = columns.map((_, at) => cells.reduce((most, line) => Math.max(most, line[at]?.length ?? 0), 0));
  return cells
    .map((line) => line.map((cell, at) => (columns[at]?.isNumber ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0))).join('  ').trimEnd())
    .join('\n');
}

/** Formats rows as a Markdown table; names are escaped so that they cannot end a cell. */
export function rowsAsMarkdown<Row>(columns: Column<Row>[], rows: Row[]): string {
  const line = (cells: string[]) => `| ${cells.map((cell) => oneLine(cell).replace(/[\\|`*_<>[\]]/g, '\\$&')).join(' | ')} |`;
  return [
    line(columns.map((column) => column.title)), `| ${columns.map((column) => (column.isNumber ? '---:' : '---')).join(' | ')} |`,
    ...rows.map((row) => line(columns.map((column) => column.text(row)))),
  ].join('\n') + '\n';
}

/** Formats rows as CSV (RFC 4180) with the columns' keys as head. */
export function rowsAsCsv<Row>(columns: Column<Row>[], rows: Row[]): string {
  const line = (fields: (string | number)[]) => fields.map(csvField).join(',');
  return [line(columns.map((column) => column.key)), ...rows.map((row) => line(columns.map((column) => column.raw?.(row) ?? column.text(row))))].join('\r\n') + '\r\n';
}

function csvField(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ');
}
