/**
 * Paints the visible part of a flame graph. The work is bounded by the pixels, not by the nodes.
 */
import { changeColour, imageColour, shadeOf } from '../canvas/colours';
import type { CanvasSize } from '../canvas/canvas';
import { fittedName, textWidth } from '../canvas/fitted-text';
import { isDrawnDark, themeColour } from '../frame/theme';
import { folded } from '../symbol-text';
import { type FlameLayout, firstEndingAfter, isOwn, nodeImage, nodeName } from './flame-layout';

/** Visible part: values from left to right, and the scroll position of the rows. */
export interface FlameView {
  from: number;
  to: number;
  scrollPx: number;
}

export interface FlamePainting {
  layout: FlameLayout;
  view: FlameView;
  rowPx: number;
  /** Whether the root stands at the bottom. */
  isUpward: boolean;
  isMatch: Uint8Array | null;
  selected: number;
  hovered: number;
  /** Nodes on the path to the zoomed one, which are drawn pale. */
  zoomed: number;
  /** Returns the amount of a node, for boxes that have room. */
  amount?: ((node: number) => string) | undefined;
}

/** Returns the upper edge of row `depth`. */
export function rowTop(painting: { rowPx: number; isUpward: boolean; view: FlameView }, depth: number, heightPx: number): number {
  return painting.isUpward ? heightPx - (depth + 1) * painting.rowPx + painting.view.scrollPx : depth * painting.rowPx - painting.view.scrollPx;
}

/** Returns the row at a height. */
export function depthAt(painting: { rowPx: number; isUpward: boolean; view: FlameView }, yPx: number, heightPx: number): number {
  return Math.floor((painting.isUpward ? heightPx - yPx + painting.view.scrollPx : yPx + painting.view.scrollPx) / painting.rowPx);
}

export function paintFlame(context: CanvasRenderingContext2D, size: CanvasSize, painting: FlamePainting): void {
  const { layout, view, rowPx } = painting;
  const isDark = isDrawnDark();
  const [text, paleText, line, match, selected] = ['text', 'text-quiet', 'surface', 'match', 'accent'].map(themeColour);
  const span = view.to - view.from;
  if (!(span > 0)) return;
  const pxPerValue = size.widthPx / span;
  context.font = `${Math.round(rowPx * 0.62)}px ${themeColour('font-mono')}`;
  context.textBaseline = 'middle';
  const { nodes } = layout.answer;
  for (let depth = 0; depth < layout.rows.length; depth += 1) {
    const top = rowTop(painting, depth, size.heightPx);
    if (top > size.heightPx || top + rowPx < 0) continue;
    const row = layout.rows[depth] ?? new Int32Array();
    let place = firstEndingAfter(layout, row, view.from);
    while (place < row.length) {
      const node = row[place] ?? 0;
      const start = ((layout.starts[node] ?? 0) - view.from) * pxPerValue;
      if (start >= size.widthPx) break;
      const width = (layout.widths[node] ?? 0) * pxPerValue;
      const [left, right] = [Math.max(0, start), Math.min(size.widthPx, start + width)];
      const isDimmed = painting.isMatch !== null && painting.isMatch[node] === 0;
      context.fillStyle = isDimmed ? dimmed(isDark) : boxColour(layout, node, isDark);
      if (width < 1) {
        context.fillRect(Math.floor(left), top, 1, rowPx - 1);
        // All other nodes that end in this pixel are invisible.
        const next = firstEndingAfter(layout, row, view.from + (Math.floor(left) + 1) / pxPerValue);
        place = Math.max(place + 1, next);
        continue;
      }
      context.fillRect(left, top, Math.max(1, right - left - (width > 3 ? 1 : 0)), rowPx - 1);
      if (painting.isMatch?.[node] === 1) {
        context.fillStyle = match ?? '';
        context.fillRect(left, top + rowPx - 4, Math.max(1, right - left - 1), 3);
      }
      const leftOut = nodes.left_out?.[node] ?? 0;
      if (leftOut > 0 && width > 24) {
        // A notch at the right end marks children that were not sent.
        const notch = Math.min(width / 2, Math.max(3, leftOut * pxPerValue));
        context.fillStyle = line ?? '';
        context.globalAlpha = 0.55;
        for (let x = right - notch; x < right - 1; x += 4) context.fillRect(x, painting.isUpward ? top : top + rowPx - 3, 2, 2);
        context.globalAlpha = 1;
      }
      if (node === painting.selected || node === painting.hovered) {
        context.strokeStyle = (node === painting.selected ? selected : text) ?? '';
        context.lineWidth = node === painting.selected ? 2 : 1;
        context.strokeRect(left + 0.5, top + 0.5, Math.max(1, right - left - 2), rowPx - 2);
      }
      if (right - left > 20) {
        context.fillStyle = (isDimmed ? paleText : text) ?? '';
        const name = fittedName(context, foldedName(nodeName(layout, node)), right - left - 8);
        if (name) context.fillText(name, left + 4, top + rowPx / 2);
        const room = right - left - 20 - textWidth(context, name);
        const amount = room > 40 && painting.amount ? painting.amount(node) : '';
        if (amount !== '' && textWidth(context, amount) < room) {
          context.textAlign = 'right';
          context.fillText(amount, right - 6, top + rowPx / 2);
          context.textAlign = 'left';
        }
      }
      place += 1;
    }
  }
}

const foldedNames = new Map<string, string>();

/**
 * Returns the name with the text between brackets folded, as in tables; each name is folded once.
 */
function foldedName(name: string): string {
  let short = foldedNames.get(name);
  if (short === undefined) {
    if (foldedNames.size > 50_000) foldedNames.clear();
    short = folded(name);
    foldedNames.set(name, short);
  }
  return short;
}

function boxColour(layout: FlameLayout, node: number, isDark: boolean): string {
  const { nodes } = layout.answer;
  if (layout.isDiff) return changeColour(nodes.before?.[node] ?? 0, nodes.after?.[node] ?? 0, isDark);
  if ((nodes.frame[node] ?? -1) < 0) return isDark ? 'hsl(220 6% 30%)' : 'hsl(220 10% 86%)';
  return cachedColour(layout, nodes.frame[node] ?? 0, node, isDark);
}

let cachedFor: FlameLayout | null = null;
let cachedDark = false;
let cached: string[] = [];

/** Returns the colour of a frame, cached for each answer and theme. */
function cachedColour(layout: FlameLayout, frame: number, node: number, isDark: boolean): string {
  if (cachedFor !== layout || cachedDark !== isDark) {
    [cachedFor, cachedDark, cached] = [layout, isDark, []];
  }
  return (cached[frame] ??= imageColour(nodeImage(layout, node), isDark, shadeOf(nodeName(layout, node)), isOwn(layout, node)));
}

function dimmed(isDark: boolean): string {
  return isDark ? 'hsl(220 5% 24%)' : 'hsl(220 12% 93%)';
}
