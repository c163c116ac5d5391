/** Positions of a treemap's nodes. */
import type { TreemapAnswer } from '../api/types';
import type { CanvasSize } from '../canvas/canvas';
import { type Box, squarify } from './treemap-layout';

export interface PlacedNode {
  node: number;
  depth: number;
  box: Box;
  /** Bytes of parts too small for an area, and half of their interval if they are an estimate. */
  rest?: number;
  restHalf?: number;
}

/** Returns the rectangles to draw, parents before children, without invisible ones. */
export function place(answer: TreemapAnswer, size: CanvasSize, headPx: number): PlacedNode[] {
  const { nodes } = answer;
  const children = new Map<number, number[]>();
  nodes.parent.forEach((parent, node) => {
    if (parent < 0 || parent >= node) return;
    const list = children.get(parent);
    if (list) list.push(node);
    else children.set(parent, [node]);
  });
  const placed: PlacedNode[] = [{ node: 0, depth: 0, box: { x: 0, y: 0, width: size.widthPx, height: size.heightPx } }];
  for (let at = 0; at < placed.length; at += 1) {
    const { node, depth, box, rest: small } = placed[at] ?? { node: 0, depth: 0, box: { x: 0, y: 0, width: 0, height: 0 } };
    if (small !== undefined) continue;
    const below = children.get(node);
    if (!below || box.width < 12 || box.height < headPx + 8) continue;
    const inner = { x: box.x + 2, y: box.y + headPx, width: box.width - 4, height: box.height - headPx - 2 };
    // The node's self amount and omitted children keep their share of the area.
    const sum = below.reduce((total, child) => total + (nodes.value[child] ?? 0), 0);
    const rest = Math.max(0, (nodes.value[node] ?? 0) - sum);
    const boxes = squarify([...below.map((child) => nodes.value[child] ?? 0), rest], inner);
    below.forEach((child, place) => {
      const childBox = boxes[place];
      if (childBox && childBox.width >= 2 && childBox.height >= 2) placed.push({ node: child, depth: depth + 1, box: childBox });
    });
    const restBox = boxes[below.length];
    if (restBox && restBox.width > 40 && restBox.height > headPx) placed.push({ node: -1, depth: depth + 1, box: restBox, rest, restHalf: nodes.left_out_plus_minus?.[node] ?? 0 });
  }
  return placed;
}
