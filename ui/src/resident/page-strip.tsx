/**
 * Strip of pages: the address space in order, each cell in the colour of the class with most
 * resident bytes in it.
 */
import { useCallback, useState } from 'preact/hooks';
import type { PageCells } from '../api/types';
import { Canvas, type CanvasSize } from '../canvas/canvas';
import { placeSeriesColour } from '../canvas/colours';
import { formatBytes } from '../format';
import { isDrawnDark, themeColour } from '../frame/theme';
import { STRIP_COLUMNS, cellAddress, cellAt, cellStrength } from './page-places';

interface PageStripProps {
  pages: PageCells;
  labelOf: (classKey: string) => string;
  placeOf: (classKey: string) => number;
  /** Word for the bytes of a cell that count: `resident`, `live`. */
  word?: string;
}

export function PageStrip({ pages, labelOf, placeOf, word = 'resident' }: PageStripProps) {
  const [size, setSize] = useState<CanvasSize>({ widthPx: 0, heightPx: 0 });
  const [chosen, setChosen] = useState(-1);
  const count = pages.class.length;
  const cellPx = size.widthPx / STRIP_COLUMNS;
  const draw = useCallback((context: CanvasRenderingContext2D, { widthPx }: CanvasSize) => {
    const px = widthPx / STRIP_COLUMNS;
    const isDark = isDrawnDark();
    const colours = pages.classes.map((key) => placeSeriesColour(placeOf(key), isDark));
    const empty = themeColour('raised') ?? '';
    pages.class.forEach((place, cell) => {
      const [x, y] = [(cell % STRIP_COLUMNS) * px, Math.floor(cell / STRIP_COLUMNS) * px];
      context.globalAlpha = 1;
      context.fillStyle = empty;
      context.fillRect(x, y, px - 0.5, px - 0.5);
      if (place !== null) {
        context.globalAlpha = cellStrength(pages, cell);
        context.fillStyle = colours[place] ?? empty;
        context.fillRect(x, y, px - 0.5, px - 0.5);
      }
      if (cell === chosen) {
        context.globalAlpha = 1;
        context.strokeStyle = themeColour('text') ?? '';
        context.lineWidth = 2;
        context.strokeRect(x, y, px, px);
      }
    });
    context.globalAlpha = 1;
  }, [pages, chosen]);
  const under = (event: MouseEvent) => {
    const area = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return cellAt(event.clientX - area.left, event.clientY - area.top, cellPx, count);
  };
  const tell = (cell: number) => {
    const place = pages.class[cell] ?? null;
    const resident = pages.resident_bytes[cell] ?? 0;
    return `${cellAddress(pages, cell)}: ${place === null ? `nothing ${word}` : `${labelOf(pages.classes[place] ?? '')}, ${formatBytes(resident)} of ${formatBytes(pages.cell_bytes)} ${word}`}`;
  };
  const rows = Math.max(1, Math.ceil(count / STRIP_COLUMNS));
  return (
    <section class="card page-strip">
      <header><h2>Pages by address</h2><span class="quiet" role="status">{chosen >= 0 ? tell(chosen) : `A cell is ${formatBytes(pages.cell_bytes)} of addresses; the stronger, the more of it is ${word}.`}</span></header>
      <div class="strip-box" style={{ aspectRatio: `${STRIP_COLUMNS} / ${rows}` }}>
        <Canvas
          draw={draw} onSize={setSize} label={`Pages by address: ${count} cells of ${formatBytes(pages.cell_bytes)}. Arrow keys walk.`}
          onPointerMove={(event) => setChosen(under(event))} onPointerLeave={() => setChosen(-1)}
          onKeyDown={(event) => {
            const step = { ArrowRight: 1, ArrowDown: STRIP_COLUMNS, ArrowLeft: -1, ArrowUp: -STRIP_COLUMNS }[event.key];
            if (step === undefined) return;
            event.preventDefault();
            event.stopPropagation();
            const next = chosen < 0 ? 0 : chosen + step;
            if (next >= 0 && next < count) setChosen(next);
          }}
        />
      </div>
    </section>
  );
}
