/** Treemap on a canvas: hover describes, a click chooses, a double click zooms, arrow keys walk. */
import { useCallback, useMemo, useState } from 'preact/hooks';
import type { TreemapAnswer } from '../api/types';
import { Canvas, type CanvasSize } from '../canvas/canvas';
import { imageColour } from '../canvas/colours';
import { fittedName, fittedText } from '../canvas/fitted-text';
import { Tooltip } from '../canvas/tooltip';
import { exactBytes, formatPercent } from '../format';
import { isDrawnDark, themeColour } from '../frame/theme';
import { within } from '../trace/estimate';
import { place } from './treemap-place';

interface TreemapProps {
  answer: TreemapAnswer | null;
  nameOf: (node: number) => string;
  /** Returns the name that gives an area its colour; by default the displayed name. */
  colourName?: (node: number) => string;
  /** Returns the colour of an area that has none by its name. */
  colourOf?: (node: number, depth: number) => string;
  amount: (value: number) => string;
  isBytes: boolean;
  /** Word for the amount in the tooltip: `retained`, `live`. */
  word: string;
  /** Id of the chosen node. */
  chosen: string;
  label: string;
  onChoose: (id: string) => void;
  onEnter: (id: string) => void;
  onLeave: () => void;
}

/** Fills an area of many small parts with stripes. */
function hatch(context: CanvasRenderingContext2D, box: { x: number; y: number; width: number; height: number }): void {
  context.save();
  context.fillStyle = themeColour('raised');
  context.fillRect(box.x, box.y, box.width - 1, box.height - 1);
  context.beginPath();
  context.rect(box.x, box.y, box.width - 1, box.height - 1);
  context.clip();
  context.strokeStyle = themeColour('line');
  context.lineWidth = 3;
  context.beginPath();
  for (let x = box.x - box.height; x < box.x + box.width; x += 10) {
    context.moveTo(x, box.y + box.height);
    context.lineTo(x + box.height, box.y);
  }
  context.stroke();
  context.restore();
}

export function TreemapCanvas({ answer, nameOf, colourName = nameOf, colourOf, amount, isBytes, word, chosen, label, onChoose, onEnter, onLeave }: TreemapProps) {
  const [size, setSize] = useState<CanvasSize>({ widthPx: 0, heightPx: 0 });
  const [hover, setHover] = useState<{ at: number; x: number; y: number } | null>(null);
  const headPx = Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 1.35);
  const placed = useMemo(() => (answer && size.widthPx > 0 ? place(answer, size, headPx) : []), [answer, size, headPx]);
  const idOf = (at: number): string | null => {
    const id = answer?.nodes.id[placed[at]?.node ?? -1];
    return id === null || id === undefined ? null : String(id);
  };

  const amountOf = (node: number, text = amount) => within(answer?.nodes.value[node] ?? 0, answer?.nodes.value_plus_minus?.[node], text);

  const draw = useCallback((context: CanvasRenderingContext2D) => {
    const isDark = isDrawnDark();
    const [text, surface, accent] = ['text', 'surface', 'accent'].map(themeColour);
    context.font = `${Math.round(headPx * 0.66)}px ${themeColour('font-ui')}`;
    context.textBaseline = 'middle';
    placed.forEach(({ node, depth, box, rest, restHalf }, at) => {
      if (rest !== undefined) {
        // Many areas too small to be drawn, not an empty place.
        hatch(context, box);
        context.fillStyle = themeColour('text-quiet');
        context.fillText(fittedText(context, `the rest  ${within(rest, restHalf, amount)}`, box.width - 8), box.x + 4, box.y + headPx / 2);
        return;
      }
      const name = nameOf(node);
      context.fillStyle = depth === 0 ? (surface ?? '') : colourOf?.(node, depth) ?? imageColour(colourName(node), isDark, depth);
      context.fillRect(box.x, box.y, box.width - 1, box.height - 1);
      context.strokeStyle = surface ?? '';
      context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
      if (chosen !== '' && idOf(at) === chosen) {
        context.strokeStyle = accent ?? '';
        context.lineWidth = 2;
        context.strokeRect(box.x + 1, box.y + 1, box.width - 3, box.height - 3);
        context.lineWidth = 1;
      }
      if (box.width > 26 && box.height > headPx - 3) {
        context.fillStyle = text ?? '';
        context.fillText(fittedName(context, name, box.width - 8, `  ${amountOf(node)}`), box.x + 4, box.y + headPx / 2);
      }
    });
  }, [placed, chosen]);

  const under = (event: MouseEvent): number => {
    const area = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const [x, y] = [event.clientX - area.left, event.clientY - area.top];
    return placed.findLastIndex(({ box, rest }) => rest === undefined && x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height);
  };
  const current = chosen === '' ? -1 : placed.findIndex((_, at) => idOf(at) === chosen);
  /** Moves to the next area in this direction that can be chosen. */
  const walk = (step: number) => {
    for (let at = current + step; at >= 0 && at < placed.length; at += step) {
      const id = idOf(at);
      if (id !== null && placed[at]?.rest === undefined) {
        onChoose(id);
        return;
      }
    }
  };
  const hovered = hover ? placed[hover.at] : undefined;
  const value = answer && hovered ? (answer.nodes.value[hovered.node] ?? 0) : 0;
  const own = answer && hovered ? (answer.nodes.self[hovered.node] ?? 0) : 0;
  return (
    <Canvas
      draw={draw} onSize={setSize} label={label}
      onPointerMove={(event) => { const at = under(event); setHover(at < 0 ? null : { at, x: event.clientX, y: event.clientY }); }}
      onPointerLeave={() => setHover(null)}
      onClick={(event) => { const id = idOf(under(event)); if (id !== null) onChoose(id); }}
      onDblClick={(event) => { const id = idOf(under(event)); if (id !== null) onEnter(id); }}
      onKeyDown={(event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (step !== undefined) walk(step);
        else if (event.key === 'Enter' && chosen !== '') onEnter(chosen);
        else if (event.key === 'Escape') onLeave();
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      {hover && hovered && (
        <Tooltip x={hover.x} y={hover.y}>
          <strong>{nameOf(hovered.node)}</strong>
          <div>{amountOf(hovered.node)} {word}, {formatPercent(value, answer?.nodes.value[0] ?? 0)}</div>
          <div class="quiet">{isBytes ? amountOf(hovered.node, exactBytes) : ''}{own > 0 && own !== value ? `; itself ${within(own, answer?.nodes.self_plus_minus?.[hovered.node], amount)}` : ''}</div>
        </Tooltip>
      )}
    </Canvas>
  );
}
