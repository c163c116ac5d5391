/**
 * The shortest ways to an object as one picture: objects that several ways share are one box.
 *
 * ```text
 * (root) --(2)--> globalThis --store--> MemoryStore --.sessions--> Object
 *        \-system-> Window ---------------------------/
 * ```
 * Each object stands in the column of its longest distance from the root, so that every arrow leads to the right.
 */
import type { PathStep } from '../api/types';

export interface PathBox {
  step: PathStep;
  column: number;
  row: number;
}

export interface PathArrow {
  from: PathBox;
  to: PathBox;
  label: string;
}

export interface PathLayout {
  boxes: PathBox[];
  arrows: PathArrow[];
  columns: number;
  rows: number;
}

export function pathLayout(paths: PathStep[][]): PathLayout {
  const boxes = new Map<number, PathBox>();
  const arrows = new Map<string, { from: number; to: number; label: string }>();
  for (const path of paths) {
    path.forEach((step, at) => {
      const known = boxes.get(step.id);
      if (!known) boxes.set(step.id, { step, column: at, row: 0 });
      else known.column = Math.max(known.column, at);
      const before = path[at - 1];
      if (before) arrows.set(`${before.id} ${step.id} ${step.held_as}`, { from: before.id, to: step.id, label: step.held_as });
    });
  }
  // A box moved to the right pushes what it points to. Ways have no cycles, so this ends; the bound is for files that lie.
  for (let round = 0, moved = true; moved && round < 200; round += 1) {
    moved = false;
    for (const { from, to } of arrows.values()) {
      const [a, b] = [boxes.get(from), boxes.get(to)];
      if (a && b && a !== b && b.column <= a.column) {
        b.column = a.column + 1;
        moved = true;
      }
    }
  }
  const perColumn = new Map<number, number>();
  for (const box of boxes.values()) {
    box.row = perColumn.get(box.column) ?? 0;
    perColumn.set(box.column, box.row + 1);
  }
  const list = [...boxes.values()];
  return {
    boxes: list,
    arrows: [...arrows.values()].flatMap(({ from, to, label }) => {
      const [a, b] = [boxes.get(from), boxes.get(to)];
      return a && b ? [{ from: a, to: b, label }] : [];
    }),
    columns: list.reduce((most, box) => Math.max(most, box.column + 1), 0),
    rows: list.reduce((most, box) => Math.max(most, box.row + 1), 0),
  };
}
