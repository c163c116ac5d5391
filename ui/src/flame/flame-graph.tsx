/** Interactive flame graph: hover, select, zoom, pan, by mouse and by keyboard. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Canvas, type CanvasSize } from '../canvas/canvas';
import { Tooltip } from '../canvas/tooltip';
import { linkedName } from '../image-links';
import { folded } from '../symbol-text';
import { type FlameLayout, nodeAt, nodeImage, nodeName, pathTo } from './flame-layout';
import { type FlameView, depthAt, paintFlame } from './flame-paint';

interface FlameGraphProps {
  layout: FlameLayout;
  /** Request that the layout answers; for another one the view starts at the root. */
  question: string;
  isUpward: boolean;
  isMatch: Uint8Array | null;
  /** Id of the node that fills the width; empty for the whole. */
  zoom: string;
  onZoom: (id: string) => void;
  selected: string;
  onSelect: (id: string) => void;
  /** Returns the tooltip's lines about a node, below its name. */
  describe: (node: number) => string[];
  label: string;
  /** Returns the amount written into boxes that have room. */
  amount?: (node: number) => string;
}

const ZOOM_MS = 160;

export function FlameGraph(props: FlameGraphProps) {
  const { layout, isUpward, isMatch } = props;
  const zoomed = layout.byId.get(props.zoom) ?? 0;
  const selected = layout.byId.get(props.selected) ?? -1;
  const [view, setView] = useState<FlameView>(() => viewOf(layout, zoomed));
  const [hover, setHover] = useState<{ node: number; x: number; y: number } | null>(null);
  const size = useRef<CanvasSize>({ widthPx: 1, heightPx: 1 });
  const rowPx = Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 1.45);
  const drag = useRef<{ x: number; y: number; view: FlameView; moved: boolean } | null>(null);
  const shownLayout = useRef(layout);
  const shownQuestion = useRef(props.question);

  // A zoom is animated so that the eye can follow; new data is shown at once.
  useEffect(() => {
    const target = viewOf(layout, zoomed);
    const isOther = shownLayout.current !== layout;
    const isNewer = isOther && shownQuestion.current === props.question;
    [shownLayout.current, shownQuestion.current] = [layout, props.question];
    if (isOther || matchMedia('(prefers-reduced-motion: reduce)').matches) {
      // A running session brings a newer answer each second: rows stay at their positions.
      setView((old) => clamp({ ...target, scrollPx: isNewer ? old.scrollPx : 0 }));
      return;
    }
    const begin = { ...view };
    const startMs = performance.now();
    let frame = requestAnimationFrame(function step(nowMs) {
      const part = Math.min(1, Math.max(0, (nowMs - startMs) / ZOOM_MS));
      const eased = 1 - (1 - part) ** 3;
      const between = (a: number, b: number) => a + (b - a) * eased;
      setView({ from: between(begin.from, target.from), to: between(begin.to, target.to), scrollPx: begin.scrollPx });
      if (part < 1) frame = requestAnimationFrame(step);
    });
    return () => cancelAnimationFrame(frame);
  }, [layout, zoomed]);

  const painting = useMemo(
    () => ({ layout, view, rowPx, isUpward, isMatch, selected, hovered: hover?.node ?? -1, zoomed, amount: props.amount }),
    [layout, view, rowPx, isUpward, isMatch, selected, hover?.node, zoomed],
  );
  const draw = useCallback((context: CanvasRenderingContext2D, canvasSize: CanvasSize) => paintFlame(context, canvasSize, painting), [painting]);

  const clamp = (next: FlameView): FlameView => {
    const least = Math.max(layout.total / 1e7, 1e-9);
    const width = Math.min(layout.total, Math.max(least, next.to - next.from));
    const from = Math.max(0, Math.min(layout.total - width, next.from));
    const most = Math.max(0, layout.rows.length * rowPx - size.current.heightPx + rowPx);
    return { from, to: from + width, scrollPx: Math.max(0, Math.min(most, next.scrollPx)) };
  };
  const nodeUnder = (event: MouseEvent): number => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const value = view.from + ((event.clientX - box.left) / box.width) * (view.to - view.from);
    return nodeAt(layout, depthAt(painting, event.clientY - box.top, size.current.heightPx), value);
  };
  const showNode = (node: number) => {
    props.onSelect(layout.answer.nodes.id[node] ?? '');
    const depth = layout.depths[node] ?? 0;
    setView((old) => clamp({ ...old, scrollPx: scrolledTo(old, depth) }));
  };

  const scrolledTo = (old: FlameView, depth: number): number => {
    const [top, bottom] = [depth * rowPx, (depth + 1) * rowPx];
    return top < old.scrollPx ? top : bottom > old.scrollPx + size.current.heightPx ? bottom - size.current.heightPx : old.scrollPx;
  };
  // A node selected elsewhere (the next match, Back) is scrolled into view, even if the zoom
  // excludes it.
  useEffect(() => {
    if (selected < 0) return;
    const [start, width] = [layout.starts[selected] ?? 0, layout.widths[selected] ?? 0];
    setView((old) => {
      const span = old.to - old.from;
      const isSeen = start + width > old.from && start < old.to;
      const from = isSeen ? old.from : start + width / 2 - span / 2;
      return clamp({ from, to: from + span, scrollPx: scrolledTo(old, layout.depths[selected] ?? 0) });
    });
  }, [selected]);
  // The search match nearest to the root is scrolled into view, with some rows above it.
  useEffect(() => {
    if (!isMatch) return;
    const depth = layout.rows.findIndex((row) => row.some((node) => isMatch[node] !== 0));
    if (depth >= 0) setView((old) => clamp({ ...old, scrollPx: scrolledTo(old, depth + (depth * rowPx > old.scrollPx ? 3 : 0)) }));
  }, [isMatch]);

  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const span = view.to - view.from;
    if (event.ctrlKey || event.metaKey) {
      const at = view.from + ((event.clientX - box.left) / box.width) * span;
      const factor = Math.exp(event.deltaY * 0.002);
      setView(clamp({ ...view, from: at - (at - view.from) * factor, to: at + (view.to - at) * factor }));
      return;
    }
    const sidewaysPx = event.shiftKey ? event.deltaY : event.deltaX;
    const downPx = event.shiftKey ? 0 : event.deltaY;
    const byValue = (sidewaysPx / box.width) * span;
    setView(clamp({ from: view.from + byValue, to: view.to + byValue, scrollPx: view.scrollPx + (isUpward ? -downPx : downPx) }));
  };
  const onPointerMove = (event: PointerEvent) => {
    const start = drag.current;
    if (!start) {
      const node = nodeUnder(event);
      setHover(node < 0 ? null : { node, x: event.clientX, y: event.clientY });
      return;
    }
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
    if (!start.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    start.moved = true;
    const byValue = (dx / box.width) * (start.view.to - start.view.from);
    setHover(null);
    setView(clamp({ from: start.view.from - byValue, to: start.view.to - byValue, scrollPx: start.view.scrollPx + (isUpward ? dy : -dy) }));
  };
  const onPointerUp = (event: PointerEvent) => {
    const start = drag.current;
    drag.current = null;
    if (!start || start.moved) return;
    const node = nodeUnder(event);
    if (node >= 0) props.onSelect(layout.answer.nodes.id[node] ?? '');
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const node = selected < 0 ? zoomed : selected;
    const depth = layout.depths[node] ?? 0;
    const [up, down] = isUpward ? ['ArrowDown', 'ArrowUp'] : ['ArrowUp', 'ArrowDown'];
    const zoomBy = (factor: number) => {
      const middle = (view.from + view.to) / 2;
      const half = ((view.to - view.from) / 2) * factor;
      setView(clamp({ ...view, from: middle - half, to: middle + half }));
    };
    const steps: Record<string, () => void> = {
      [up ?? '']: () => showNode(Math.max(0, layout.answer.nodes.parent[node] ?? 0)),
      [down ?? '']: () => {
        const child = nodeAt(layout, depth + 1, (layout.starts[node] ?? 0) + 1e-9);
        if (child >= 0 && layout.answer.nodes.parent[child] === node) showNode(child);
      },
      ArrowLeft: () => sibling(-1),
      ArrowRight: () => sibling(1),
      Enter: () => props.onZoom(node === zoomed ? '' : (layout.answer.nodes.id[node] ?? '')),
      Backspace: () => props.onZoom(layout.answer.nodes.id[Math.max(0, layout.answer.nodes.parent[zoomed] ?? 0)] ?? ''),
      Escape: () => props.onZoom(''),
      '+': () => zoomBy(0.6),
      '=': () => zoomBy(0.6),
      '-': () => zoomBy(1 / 0.6),
    };
    const sibling = (step: number) => {
      const row = layout.rows[depth] ?? new Int32Array();
      const next = row[row.indexOf(node) + step];
      if (next !== undefined) showNode(next);
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    step();
  };

  return (
    <Canvas
      draw={draw} label={`${props.label}. Arrow keys walk, Enter zooms, Escape shows all.`}
      onSize={(next) => {
        size.current = next;
      }}
      onWheel={onWheel} onPointerMove={onPointerMove} onPointerUp={onPointerUp} onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        drag.current = { x: event.clientX, y: event.clientY, view, moved: false };
      }}
      onPointerLeave={() => setHover(null)}
      onDblClick={(event) => {
        const node = nodeUnder(event);
        if (node >= 0) props.onZoom(layout.answer.nodes.id[node] ?? '');
      }}
    >
      {hover && (
        <Tooltip x={hover.x} y={hover.y}>
          <strong>{nodeName(layout, hover.node)}</strong>
          {nodeImage(layout, hover.node) && <div class="quiet">{linkedName(nodeImage(layout, hover.node))}</div>}
          {props.describe(hover.node).map((line) => <div key={line}>{line}</div>)}
        </Tooltip>
      )}
      <span class="off-screen" role="status">{selected >= 0 ? `${nodeName(layout, selected)}, ${props.describe(selected).join(', ')}` : ''}</span>
    </Canvas>
  );
}

function viewOf(layout: FlameLayout, node: number): FlameView {
  const from = layout.starts[node] ?? 0;
  return { from, to: from + Math.max(layout.widths[node] ?? 0, 1e-9), scrollPx: 0 };
}

/** Returns ids and names from the whole to the zoomed node, for the line above the picture. */
export function zoomTrail(layout: FlameLayout, zoom: string): { id: string; name: string }[] {
  const node = layout.byId.get(zoom);
  if (node === undefined) return [];
  return pathTo(layout, node).map((step) => ({ id: step === 0 ? '' : (layout.answer.nodes.id[step] ?? ''), name: folded(nodeName(layout, step)) }));
}
