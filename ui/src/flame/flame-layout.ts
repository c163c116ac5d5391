/**
 * Boxes of a flame graph in flat arrays: start and width of each node on the scale of values, and
 * the nodes of each row.
 *
 * Nodes come after their parent, and siblings in order, so that one pass places them: each begins
 * where its last sibling ended.
 */
import { fileName, unnamedCode } from '../format';
import { linkedName } from '../image-links';
import type { FoldedAnswer } from './fold-libraries';

export interface FlameLayout {
  answer: FoldedAnswer;
  /** Width of each node on the scale of values. */
  widths: Float64Array;
  starts: Float64Array;
  depths: Int32Array;
  /** Nodes by depth, from left to right. */
  rows: Int32Array[];
  /** Node by id. */
  byId: Map<string, number>;
  total: number;
  isDiff: boolean;
  /** Whether some frame is known as the program's own. */
  hasOwn: boolean;
}

export function flameLayout(answer: FoldedAnswer): FlameLayout {
  const { nodes } = answer;
  const count = nodes.id.length;
  const isDiff = nodes.value === undefined;
  const widths = new Float64Array(count);
  for (let node = 0; node < count; node += 1) {
    widths[node] = isDiff ? Math.max(nodes.before?.[node] ?? 0, nodes.after?.[node] ?? 0) : (nodes.value?.[node] ?? 0);
  }
  const starts = new Float64Array(count);
  const depths = new Int32Array(count);
  /** Start of the next child of each node. */
  const next = new Float64Array(count);
  const lists: number[][] = [];
  const byId = new Map<string, number>();
  for (let node = 0; node < count; node += 1) {
    const parent = nodes.parent[node] ?? -1;
    if (parent >= 0 && parent < node) {
      const start = next[parent] ?? 0;
      starts[node] = start;
      next[parent] = start + (widths[node] ?? 0);
      depths[node] = (depths[parent] ?? 0) + 1;
    }
    next[node] = starts[node] ?? 0;
    (lists[depths[node] ?? 0] ??= []).push(node);
    byId.set(nodes.id[node] ?? '', node);
  }
  // A breadth-first answer has each row in order already; any other is sorted here.
  const rows = lists.map((list) => {
    const row = Int32Array.from(list);
    row.sort((a, b) => (starts[a] ?? 0) - (starts[b] ?? 0) || a - b);
    return row;
  });
  return { answer, widths, starts, depths, rows, byId, total: widths[0] ?? 0, isDiff, hasOwn: answer.frames.some((frame) => frame.is_own === true) };
}

/** Returns the first index in `row` whose node ends after `value`. */
export function firstEndingAfter(layout: FlameLayout, row: Int32Array, value: number): number {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const node = row[middle] ?? 0;
    if ((layout.starts[node] ?? 0) + (layout.widths[node] ?? 0) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the node in row `depth` at a value, or -1. */
export function nodeAt(layout: FlameLayout, depth: number, value: number): number {
  const row = layout.rows[depth];
  if (!row) return -1;
  const node = row[firstEndingAfter(layout, row, value)];
  return node !== undefined && (layout.starts[node] ?? 0) <= value ? node : -1;
}

/** Returns the nodes from the whole down to `node`. */
export function pathTo(layout: FlameLayout, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at >= 0; at = layout.answer.nodes.parent[at] ?? -1) path.push(at);
  return path.reverse();
}

/** Returns the symbol's name, or a substitute for it, with the number of frames folded into it. */
export function nodeName(layout: FlameLayout, node: number): string {
  const merged = layout.answer.merged?.[node] ?? 0;
  const name = layout.answer.collapsed?.[node] ? linkedName(nodeImage(layout, node)) : frameNameOf(layout, node);
  return merged > 0 ? `${name} +${merged}` : name;
}

function frameNameOf(layout: FlameLayout, node: number): string {
  const frame = layout.answer.frames[layout.answer.nodes.frame[node] ?? -1];
  if (!frame) return 'all';
  const { names } = layout.answer;
  const symbol = names[frame.symbol];
  // A difference identifies frames by name; `?` means no name.
  const image = linkedName(fileName(names[frame.module] ?? ''));
  if (symbol === '?') return image ? `${image} (no name)` : '(no name)';
  if (symbol && frame.line != null) return `${symbol} ${fileName(names[frame.file ?? 0] ?? '')}:${frame.line}`;
  if (symbol) return symbol;
  return unnamedCode(image, frame.offset);
}

/** Returns the file name of the node's image; empty without an image. */
export function nodeImage(layout: FlameLayout, node: number): string {
  const frame = layout.answer.frames[layout.answer.nodes.frame[node] ?? -1];
  const module = frame ? (layout.answer.names[frame.module] ?? '') : '';
  return module.slice(module.lastIndexOf('/') + 1);
}

/** Returns the nodes whose symbol or image contains a text (any case), or null without a text. */
export function matching(layout: FlameLayout, text: string): { isMatch: Uint8Array; count: number; value: number } | null {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return null;
  const { nodes, frames, names } = layout.answer;
  const nameMatches = names.map((name) => name.toLowerCase().includes(wanted));
  const frameMatches = frames.map((frame) => nameMatches[frame.symbol] === true || nameMatches[frame.module] === true);
  const isMatch = new Uint8Array(nodes.id.length);
  /** Nodes below a match, which the match already counts. */
  const isCovered = new Uint8Array(nodes.id.length);
  let count = 0;
  let value = 0;
  for (let node = 0; node < nodes.id.length; node += 1) {
    const parent = nodes.parent[node] ?? -1;
    const above = parent >= 0 ? isCovered[parent] : 0;
    const match = frameMatches[nodes.frame[node] ?? -1] === true;
    if (match) {
      isMatch[node] = 1;
      count += 1;
      if (!above) value += layout.widths[node] ?? 0;
    }
    isCovered[node] = above || match ? 1 : 0;
  }
  return { isMatch, count, value };
}

/** Whether the code of a node's frame is the program's own; all of it if no frame of the graph is. */
export function isOwn(layout: FlameLayout, node: number): boolean {
  return layout.answer.frames[layout.answer.nodes.frame[node] ?? -1]?.is_own === true || !layout.hasOwn;
}
