/** Retained size as areas: by who dominates whom, or by class. */
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { useAnswer } from '../api/use-answer';
import type { TreemapAnswer } from '../api/types';
import { Canvas, type CanvasSize } from '../canvas/canvas';
import { imageColour } from '../canvas/colours';
import { fittedText } from '../canvas/fitted-text';
import { Tooltip } from '../canvas/tooltip';
import { exactBytes, formatBytes, formatPercent } from '../format';
import { Message } from '../frame/message';
import { isDrawnDark, themeColour } from '../frame/theme';
import { type Box, squarify } from '../treemap/treemap-layout';
import { type SnapshotViewProps, showObject } from './snapshot-page';

interface PlacedNode {
  node: number;
  depth: number;
  box: Box;
  /** Bytes of what is too small to be an area of its own. */
  rest?: number;
}

/** Rectangles that are drawn: parents before children; none smaller than can be seen. */
function place(answer: TreemapAnswer, size: CanvasSize, headPx: number): PlacedNode[] {
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
    // What is the node's own, or was left out, keeps its share of the area.
    const sum = below.reduce((total, child) => total + (nodes.value[child] ?? 0), 0);
    const rest = Math.max(0, (nodes.value[node] ?? 0) - sum);
    const boxes = squarify([...below.map((child) => nodes.value[child] ?? 0), rest], inner);
    below.forEach((child, place) => {
      const childBox = boxes[place];
      if (childBox && childBox.width >= 2 && childBox.height >= 2) placed.push({ node: child, depth: depth + 1, box: childBox });
    });
    const restBox = boxes[below.length];
    if (restBox && restBox.width > 40 && restBox.height > headPx) placed.push({ node: -1, depth: depth + 1, box: restBox, rest });
  }
  return placed;
}

export function TreemapView({ file, totalBytes, onCommand }: SnapshotViewProps) {
  const address = useAddress();
  const by = address.group === 'classes' ? 'classes' : 'dominators';
  const id = /^\d+$/.test(address.root) ? Number(address.root) : null;
  const { data, error, isLoading } = useAnswer<TreemapAnswer & { command?: string | null }>('/api/snapshot/treemap', { file: file.file, id, by, least_share: 0.0005, nodes_max: 5000 });
  const [size, setSize] = useState<CanvasSize>({ widthPx: 0, heightPx: 0 });
  const [hover, setHover] = useState<{ at: number; x: number; y: number } | null>(null);
  const headPx = Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 1.35);
  const placed = useMemo(() => (data && size.widthPx > 0 ? place(data, size, headPx) : []), [data, size, headPx]);
  const nameOf = (node: number) => (node === 0 && id === null ? 'the whole heap' : (data?.names[data.nodes.name[node] ?? 0] || '(no name)'));
  useEffect(() => onCommand(data?.command ?? null), [data]);
  useEffect(() => () => onCommand(null), []);

  const draw = useCallback((context: CanvasRenderingContext2D) => {
    const isDark = isDrawnDark();
    const [text, surface, accent] = ['text', 'surface', 'accent'].map(themeColour);
    context.font = `${Math.round(headPx * 0.66)}px ${themeColour('font-ui')}`;
    context.textBaseline = 'middle';
    for (const { node, depth, box, rest } of placed) {
      if (rest !== undefined) {
        context.fillStyle = themeColour('raised');
        context.fillRect(box.x, box.y, box.width - 1, box.height - 1);
        context.fillStyle = themeColour('text-quiet');
        context.fillText(fittedText(context, `the rest  ${formatBytes(rest)}`, box.width - 8), box.x + 4, box.y + headPx / 2);
        continue;
      }
      const name = nameOf(node);
      context.fillStyle = depth === 0 ? (surface ?? '') : imageColour(name.replace(/[\d@]+$/, ''), isDark, depth);
      context.fillRect(box.x, box.y, box.width - 1, box.height - 1);
      context.strokeStyle = surface ?? '';
      context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
      if (String(data?.nodes.id[node] ?? '') === String(address.object)) {
        context.strokeStyle = accent ?? '';
        context.lineWidth = 2;
        context.strokeRect(box.x + 1, box.y + 1, box.width - 3, box.height - 3);
        context.lineWidth = 1;
      }
      if (box.width > 26 && box.height > headPx - 3) {
        context.fillStyle = text ?? '';
        const amount = formatBytes(data?.nodes.value[node] ?? 0);
        context.fillText(fittedText(context, `${name}  ${amount}`, box.width - 8), box.x + 4, box.y + headPx / 2);
      }
    }
  }, [placed, address.object]);

  const under = (event: MouseEvent): number => {
    const area = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const [x, y] = [event.clientX - area.left, event.clientY - area.top];
    return placed.findLastIndex(({ box, rest }) => rest === undefined && x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height);
  };
  const idOf = (at: number) => Number(data?.nodes.id[placed[at]?.node ?? -1] ?? NaN);
  const current = placed.findIndex(({ node }) => String(data?.nodes.id[node] ?? '') === String(address.object));
  const hovered = hover ? placed[hover.at] : undefined;
  return (
    <section class="treemap">
      <div class="view-tools">
        <div class="switch" role="group" aria-label="Areas">
          <button type="button" aria-pressed={by === 'dominators'} onClick={() => go({ group: 'stacks', root: '' })}>By dominator</button>
          <button type="button" aria-pressed={by === 'classes'} onClick={() => go({ group: 'classes', root: '' })}>By class</button>
        </div>
        {id !== null && <button type="button" class="button" onClick={() => go({ root: '' })}>The whole heap</button>}
        {id !== null && <span class="quiet">inside @{id}</span>}
        <span class="quiet">Click: the object. Double click: into it.</span>
        {isLoading && <span class="quiet" role="status">loading…</span>}
      </div>
      {error && <Message kind="error">{error.message}</Message>}
      <Canvas
        draw={draw} onSize={setSize} label="Treemap of retained size. Arrow keys walk, Enter goes into an object."
        onPointerMove={(event) => { const at = under(event); setHover(at < 0 ? null : { at, x: event.clientX, y: event.clientY }); }}
        onPointerLeave={() => setHover(null)}
        onClick={(event) => { const chosen = idOf(under(event)); if (by === 'dominators' && Number.isFinite(chosen)) showObject(chosen); }}
        onDblClick={(event) => { const chosen = idOf(under(event)); if (by === 'dominators' && Number.isFinite(chosen)) go({ root: String(chosen) }); }}
        onKeyDown={(event) => {
          const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
          if (step !== undefined) { const next = idOf(Math.max(0, Math.min(placed.length - 1, current + step))); if (Number.isFinite(next)) showObject(next); } else if (event.key === 'Enter' && address.object >= 0) go({ root: String(address.object) });
          else if (event.key === 'Escape') go({ root: '' });
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      >
        {hover && hovered && data && (
          <Tooltip x={hover.x} y={hover.y}>
            <strong>{nameOf(hovered.node)}</strong>
            <div>{formatBytes(data.nodes.value[hovered.node] ?? 0)} retained, {formatPercent(data.nodes.value[hovered.node] ?? 0, totalBytes)}</div>
            <div class="quiet">{exactBytes(data.nodes.value[hovered.node] ?? 0)}; itself {formatBytes(data.nodes.self[hovered.node] ?? 0)}</div>
          </Tooltip>
        )}
      </Canvas>
    </section>
  );
}
