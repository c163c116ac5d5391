/** Positions and contents of the cells of a strip of pages. */
import type { PageCells } from '../api/types';

/** Number of cells in a row. */
export const STRIP_COLUMNS = 120;

/** Returns the address of a cell, as hexadecimal text. */
export function cellAddress(pages: PageCells, cell: number): string {
  const run = pages.runs.findLast((candidate) => candidate.cell <= cell);
  if (!run || !/^0x[0-9a-f]{1,16}$/.test(run.start_avma)) return '';
  return `0x${(BigInt(run.start_avma) + BigInt(cell - run.cell) * BigInt(pages.cell_bytes)).toString(16)}`;
}

/** Returns the strength of a cell's colour, by its resident share. */
export function cellStrength(pages: PageCells, cell: number): number {
  return 0.3 + 0.7 * Math.sqrt(Math.min(1, (pages.resident_bytes[cell] ?? 0) / pages.cell_bytes));
}

/** Returns the cell at a position of the picture; -1 if there is no cell. */
export function cellAt(x: number, y: number, cellPx: number, count: number): number {
  const column = Math.floor(x / cellPx);
  const cell = Math.floor(y / cellPx) * STRIP_COLUMNS + column;
  return column >= 0 && column < STRIP_COLUMNS && y >= 0 && cell < count ? cell : -1;
}
