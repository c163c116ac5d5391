/**
 * Layout of the shortest paths to an object as one picture, in which objects of several paths are
 * one box.
 *
 * ```text
 * (root) --(2)--> globalThis --store--> MemoryStore --.sessions--> Object
 *        \-system-> Window ----------------- · -------------------/
 * ```
 *
 * Each object stands in the column of its longest distance from the root, so that every arrow leads
 * to the right. An arrow over several columns has a position of its own in each of them (`·`), so
 * that it runs behind no box.
 */
import type { PathStep } from '../api/types';

export interface PathPlace {
  column: number;
  row: number;
}

export interface PathBox extends PathPlace {
  step: PathStep;
}

export interface PathArrow {
  label: string;
  /** Points from the source's box through the columns between to the target's box. */
  places: PathPlace[];
}

export interface PathLayout {
  boxes: PathBox[];
  arrows: PathArrow[];
  columns: number;
  rows: number;
  /** Number of positions used in each column. */
  heights: number[];
}

/** Largest number of columns, whatever a file contains. */
const COLUMNS_MAX = 400;

export function pathLayout(paths: PathStep[][]): PathLayout {
  const boxes = new Map<number, PathBox>();
  const links = new Map<string, { from: number; to: number; label: string }>();
  for (const path of paths) {
    path.forEach((step, at) => {
      const known = boxes.get(step.id);
      if (!known) boxes.set(step.id, { step, column: at, row: 0 });
      else known.column = Math.max(known.column, at);
      const before = path[at - 1];
      if (before && before.id !== step.id) links.set(`${before.id} ${step.id} ${step.held_as}`, { from: before.id, to: step.id, label: step.held_as });
    });
  }
  // A box that moves to the right pushes its targets. Paths have no cycles, so this ends; the bound
  // is for invalid files.
  for (let round = 0, moved = true; moved && round < 100; round += 1) {
    moved = false;
    for (const { from, to } of links.values()) {
      const [a, b] = [boxes.get(from), boxes.get(to)];
      if (a && b && b.column <= a.column && a.column + 1 < COLUMNS_MAX) {
        b.column = a.column + 1;
        moved = true;
      }
    }
  }
  const heights: number[] = [];
  const take = (column: number) => {
    const row = heights[column] ?? 0;
    heights[column] = row + 1;
    return row;
  };
  const list = [...boxes.values()].sort((a, b) => a.column - b.column);
  for (const box of list) box.row = take(box.column);
  const arrows: PathArrow[] = [];
  for (const { from, to, label } of links.values()) {
    const [a, b] = [boxes.get(from), boxes.get(to)];
    if (!a || !b) continue;
    const between: PathPlace[] = [];
    for (let column = a.column + 1; column < b.column; column += 1) between.push({ column, row: take(column) });
    arrows.push({ label, places: [a, ...between, b] });
  }
  return { boxes: list, arrows, columns: heights.length, rows: Math.max(0, ...heights.map((height) => height ?? 0)), heights: Array.from(heights, (height) => height ?? 0) };
}
