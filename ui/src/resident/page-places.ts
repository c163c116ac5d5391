/** Where the cells of a strip of pages stand, and what they are. */
import type { PageCells } from '../api/types';

/** Cells beside one another. */
export const STRIP_COLUMNS = 120;

/** The address of a cell, as hexadecimal text. */
export function cellAddress(pages: PageCells, cell: number): string {
  const run = pages.runs.findLast((candidate) => candidate.cell <= cell);
  if (!run || !/^0x[0-9a-f]{1,16}$/.test(run.start_avma)) return '';
  return `0x${(BigInt(run.start_avma) + BigInt(cell - run.cell) * BigInt(pages.cell_bytes)).toString(16)}`;
}

/** How strong a cell's colour is, by the share of it that is resident. */
export function cellStrength(pages: PageCells, cell: number): number {
  return 0.3 + 0.7 * Math.sqrt(Math.min(1, (pages.resident_bytes[cell] ?? 0) / pages.cell_bytes));
}

/** The cell at a place of the picture; -1: there is none. */
export function cellAt(x: number, y: number, cellPx: number, count: number): number {
  const column = Math.floor(x / cellPx);
  const cell = Math.floor(y / cellPx) * STRIP_COLUMNS + column;
  return column >= 0 && column < STRIP_COLUMNS && y >= 0 && cell < count ? cell : -1;
}
