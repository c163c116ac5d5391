/**
 * Paints the timeline: stacked areas, the line of the whole, RSS, markers, snapshots, the peak, the
 * brushed range.
 */
import type { TimelineAnswer } from '../api/types';
import type { CanvasSize } from '../canvas/canvas';
import { restColour, seriesColours } from '../canvas/colours';
import { fittedText } from '../canvas/fitted-text';
import { formatAxisTime, formatBytes } from '../format';
import { isDrawnDark, themeColour } from '../frame/theme';
import { linkedName } from '../image-links';
import { type ChartKind, chartAmount, chartFactor, halvesOf, mostRss, mostWithRss, wholeOf } from './chart-values';
import { amountStep, timeStep, timeTicks } from './scale';

export interface TimelinePainting {
  answer: TimelineAnswer | null;
  chart: ChartKind;
  showsRss: boolean;
  /** Visible interval (ns); may differ from the answer's while a newer one is loading. */
  seen: [number, number];
  /** Brushed range (ns). */
  range: [number, number] | null;
  /** Moment whose live blocks are counted (ns). */
  atNs: number | null;
  hoverNs: number | null;
  /** Heaps in files of their own, taken of the recording's processes. */
  heaps: { timeNs: number; isShown: boolean }[];
}

/** Returns the left edge of the plot: the amounts beside it grow with the page's text. */
export function axisLeftPx(): number {
  return Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 5.7);
}

export const AXIS_BOTTOM_PX = 20;
const TOP_PX = 16;

/** Returns the pixel of a time. */
export function timeToX(timeNs: number, seen: [number, number], widthPx: number): number {
  const left = axisLeftPx();
  return left + ((timeNs - seen[0]) / (seen[1] - seen[0])) * (widthPx - left);
}

/** Returns the pixel of a heap's mark, whole at the right edge; null if its time is not seen. */
export function heapToX(timeNs: number, seen: [number, number], widthPx: number): number | null {
  if (timeNs < seen[0] || timeNs > seen[1]) return null;
  return Math.min(timeToX(timeNs, seen, widthPx), widthPx - 6);
}

/** Returns the time at a pixel. */
export function xToTime(xPx: number, seen: [number, number], widthPx: number): number {
  const left = axisLeftPx();
  return seen[0] + ((xPx - left) / Math.max(1, widthPx - left)) * (seen[1] - seen[0]);
}

export function paintTimeline(context: CanvasRenderingContext2D, size: CanvasSize, painting: TimelinePainting): void {
  const { answer, chart, seen } = painting;
  const { widthPx, heightPx } = size;
  const isDark = isDrawnDark();
  const [text, quiet, grid, accent] = ['text', 'text-quiet', 'line', 'accent'].map(themeColour);
  const plotPx = heightPx - AXIS_BOTTOM_PX - TOP_PX;
  // The font grows with the page's text on large screens.
  context.font = `${Math.max(11, Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 0.82))}px ${themeColour('font-ui')}`;
  context.textBaseline = 'middle';

  const factor = answer ? chartFactor(chart, answer) : 1;
  const most = answer ? highest(painting, answer) * factor : 0;
  const step = amountStep(most, Math.max(2, Math.floor(plotPx / 32)), chart !== 'count' && chart !== 'alloc_count');
  const top = Math.max(step, most * 1.04);
  const y = (amount: number) => TOP_PX + plotPx * (1 - (amount * factor) / top);
  const left = axisLeftPx();
  const x = (timeNs: number) => left + ((timeNs - seen[0]) / (seen[1] - seen[0])) * (widthPx - left);

  context.fillStyle = quiet ?? '';
  context.strokeStyle = grid ?? '';
  context.lineWidth = 1;
  context.textAlign = 'right';
  // Without an answer the axis has no amounts.
  for (let amount = 0; answer && amount <= top; amount += step) {
    const level = Math.round(y(amount / (factor || 1))) + 0.5;
    line(context, left, level, widthPx, level);
    // A text that does not fit is written narrower.
    context.fillText(chartAmount(chart, amount), left - 6, Math.max(level, 6), left - 8);
  }
  const timeStepNs = timeStep(seen[1] - seen[0], widthPx - left, 95);
  context.textAlign = 'center';
  for (const tick of timeTicks(seen[0], seen[1], timeStepNs)) {
    const place = Math.round(x(tick)) + 0.5;
    line(context, place, heightPx - AXIS_BOTTOM_PX, place, heightPx - AXIS_BOTTOM_PX + 4);
    const label = formatAxisTime(tick, timeStepNs);
    const half = context.measureText(label).width / 2;
    context.fillText(label, Math.min(widthPx - half - 2, Math.max(left + half, place)), heightPx - AXIS_BOTTOM_PX / 2 + 1);
  }

  context.save();
  context.beginPath();
  context.rect(left, 0, widthPx - left, heightPx - AXIS_BOTTOM_PX);
  context.clip();
  if (answer && answer.bins > 0) {
    paintAreas(context, painting, answer, x, y, isDark);
    paintLabels(context, painting, answer, x, y);
    if (painting.showsRss && chart === 'bytes') paintRss(context, answer, x, y, themeColour('rss'), top / factor);
    paintSigns(context, answer, x, heightPx, { marker: themeColour('marker'), edge: themeColour('surface'), peak: themeColour('bad'), text: text ?? '', widthPx }, chart === 'bytes');
  }
  for (const { timeNs, isShown } of painting.heaps) {
    const place = heapToX(timeNs, seen, widthPx);
    if (place !== null) paintTaken(context, place, heightPx - AXIS_BOTTOM_PX, isShown ? (accent ?? '') : (text ?? ''), isShown);
  }
  if (painting.range) paintRange(context, x(painting.range[0]), x(painting.range[1]), size, accent ?? '');
  if (painting.atNs !== null) {
    context.strokeStyle = accent ?? '';
    context.lineWidth = 2;
    line(context, x(painting.atNs), 0, x(painting.atNs), heightPx - AXIS_BOTTOM_PX);
  }
  if (painting.hoverNs !== null) {
    context.strokeStyle = quiet ?? '';
    context.lineWidth = 1;
    const place = Math.round(x(painting.hoverNs)) + 0.5;
    line(context, place, TOP_PX, place, heightPx - AXIS_BOTTOM_PX);
  }
  context.restore();
}

function highest(painting: TimelinePainting, answer: TimelineAnswer): number {
  let most = 0;
  const halves = halvesOf(painting.chart, answer);
  wholeOf(painting.chart, answer).forEach((value, bin) => { most = Math.max(most, value + (halves?.[bin] ?? 0)); });
  if (painting.chart === 'bytes') {
    for (const value of answer.most_bytes) most = Math.max(most, value);
    if (painting.showsRss) most = mostWithRss(most, answer);
  }
  return most;
}

function paintAreas(
  context: CanvasRenderingContext2D, painting: TimelinePainting, answer: TimelineAnswer, x: (ns: number) => number,
  y: (amount: number) => number, isDark: boolean,
): void {
  const { bins } = answer;
  const binNs = (answer.to_ns - answer.from_ns) / bins;
  const edge = (bin: number) => x(answer.from_ns + bin * binNs);
  // During a zoom the answer is that of the previous interval, most of which may lie outside.
  const first = Math.max(0, Math.min(bins, Math.floor((painting.seen[0] - answer.from_ns) / binNs)));
  const end = Math.max(first, Math.min(bins, Math.ceil((painting.seen[1] - answer.from_ns) / binNs)));
  const colours = seriesColours(answer.series.map((series) => series.name), isDark);
  const layers = answer.series.map((series, place) => ({ values: series.values, colour: colours[place] ?? '' }));
  const isAlone = layers.length === 0;
  const whole = wholeOf(painting.chart, answer);
  layers.push({ values: isAlone ? whole : answer.rest, colour: isAlone ? themeColour('area') : restColour(isDark) });
  const below = new Float64Array(bins);
  for (const { values, colour } of layers) {
    context.beginPath();
    for (let bin = first; bin < end; bin += 1) {
      const level = y((below[bin] ?? 0) + (values[bin] ?? 0));
      context.lineTo(edge(bin), level);
      context.lineTo(edge(bin + 1), level);
    }
    for (let bin = end - 1; bin >= first; bin -= 1) {
      const level = y(below[bin] ?? 0);
      context.lineTo(edge(bin + 1), level);
      context.lineTo(edge(bin), level);
    }
    context.fillStyle = colour;
    context.fill();
    for (let bin = first; bin < end; bin += 1) below[bin] = (below[bin] ?? 0) + (values[bin] ?? 0);
  }
  const halves = halvesOf(painting.chart, answer);
  if (halves) {
    // The interval of the whole lies around its upper edge.
    const border = (bin: number, sign: number) => y(Math.max(0, (whole[bin] ?? 0) + sign * (halves[bin] ?? 0)));
    context.beginPath();
    for (let bin = first; bin < end; bin += 1) {
      context.lineTo(edge(bin), border(bin, 1));
      context.lineTo(edge(bin + 1), border(bin, 1));
    }
    for (let bin = end - 1; bin >= first; bin -= 1) {
      context.lineTo(edge(bin + 1), border(bin, -1));
      context.lineTo(edge(bin), border(bin, -1));
    }
    context.globalAlpha = 0.25;
    context.fillStyle = themeColour('text-quiet');
    context.fill();
    context.globalAlpha = 1;
  }
  if (painting.chart === 'bytes' && answer.most_bytes.length > 0) {
    context.beginPath();
    for (let bin = first; bin < end; bin += 1) context.lineTo((edge(bin) + edge(bin + 1)) / 2, y(answer.most_bytes[bin] ?? 0));
    context.strokeStyle = themeColour('text-quiet');
    context.lineWidth = 1;
    context.stroke();
  }
}

/**
 * Paints names on areas that are high and wide enough, because colours alone do not distinguish
 * them.
 */
function paintLabels(context: CanvasRenderingContext2D, painting: TimelinePainting, answer: TimelineAnswer, x: (ns: number) => number, y: (amount: number) => number): void {
  const { bins } = answer;
  const binNs = (answer.to_ns - answer.from_ns) / bins;
  const first = Math.max(0, Math.min(bins, Math.floor((painting.seen[0] - answer.from_ns) / binNs)));
  const end = Math.max(first, Math.min(bins, Math.ceil((painting.seen[1] - answer.from_ns) / binNs)));
  const linePx = Math.round(parseFloat(context.font.replace(/^.*?([\d.]+)px.*$/, '$1'))) + 3;
  const below = new Float64Array(bins);
  context.textAlign = 'center';
  for (const series of answer.series) {
    // Finds the place at which the area is highest over the whole width of the name.
    const name = fittedText(context, linkedName(series.name), 220);
    const width = Math.max(1, Math.ceil((context.measureText(name).width + 8) / Math.max(0.01, x(binNs) - x(0))));
    let best = { from: 0, low: 0, high: 0 };
    for (let from = first; from + width <= end; from += Math.max(1, width >> 2)) {
      let [low, high] = [Infinity, -Infinity];
      for (let bin = from; bin < from + width && low - high >= linePx; bin += 1) {
        low = Math.min(low, y(below[bin] ?? 0));
        high = Math.max(high, y((below[bin] ?? 0) + (series.values[bin] ?? 0)));
      }
      if (low - high >= linePx && low - high > best.low - best.high) best = { from, low, high };
    }
    if (name !== '' && best.low > best.high) {
      const middle = x(answer.from_ns + (best.from + width / 2) * binNs);
      context.lineWidth = 3;
      context.lineJoin = 'round';
      context.strokeStyle = themeColour('surface');
      context.strokeText(name, middle, (best.low + best.high) / 2);
      context.fillStyle = themeColour('text');
      context.fillText(name, middle, (best.low + best.high) / 2);
    }
    for (let bin = first; bin < end; bin += 1) below[bin] = (below[bin] ?? 0) + (series.values[bin] ?? 0);
  }
}

/** Paints resident memory. Above the plot it runs along the upper edge, with its most in words. */
function paintRss(context: CanvasRenderingContext2D, answer: TimelineAnswer, x: (ns: number) => number, y: (amount: number) => number, colour: string, top: number): void {
  for (const { time_ns, rss_bytes } of answer.rss) {
    context.beginPath();
    time_ns.forEach((timeNs, at) => context.lineTo(x(timeNs), y(Math.min(rss_bytes[at] ?? 0, top))));
    // A line of the surface's colour below makes it visible on any area.
    context.setLineDash([]);
    context.strokeStyle = themeColour('surface');
    context.lineWidth = 4;
    context.stroke();
    context.setLineDash([4, 3]);
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.stroke();
  }
  context.setLineDash([]);
  const most = mostRss(answer);
  if (most <= top) return;
  context.textAlign = 'left';
  context.strokeStyle = themeColour('surface');
  context.lineWidth = 3;
  context.strokeText(`RSS up to ${formatBytes(most)}`, axisLeftPx() + 6, TOP_PX + 9);
  context.fillStyle = colour;
  context.fillText(`RSS up to ${formatBytes(most)}`, axisLeftPx() + 6, TOP_PX + 9);
}

function paintSigns(
  context: CanvasRenderingContext2D, answer: TimelineAnswer, x: (ns: number) => number, heightPx: number,
  colours: { marker: string; edge: string; peak: string; text: string; widthPx: number }, showsPeak: boolean,
): void {
  const bottom = heightPx - AXIS_BOTTOM_PX;
  // 1 on a small screen; marks grow with the page's text.
  const scale = Math.max(1, parseFloat(getComputedStyle(document.documentElement).fontSize) / 13);
  // Keeps a mark at the edge whole.
  const inside = (place: number) => Math.min(place, colours.widthPx - 6 * scale);
  context.lineWidth = 1;
  context.textAlign = 'left';
  answer.markers.forEach((marker, at) => {
    const place = Math.round(x(marker.time_ns)) + 0.5;
    // Makes the line visible on any area.
    context.strokeStyle = colours.edge;
    context.lineWidth = 3;
    line(context, place, 0, place, bottom);
    context.lineWidth = 1;
    context.strokeStyle = context.fillStyle = colours.marker;
    line(context, place, 0, place, bottom);
    const next = answer.markers[at + 1];
    const room = next ? x(next.time_ns) - place - 8 : 220;
    context.fillText(fittedText(context, marker.text, Math.min(220, room)), place + 4, 8);
  });
  for (const snapshot of answer.snapshots) {
    const place = inside(x(snapshot.time_ns));
    context.fillStyle = colours.text;
    context.strokeStyle = colours.edge;
    context.beginPath();
    context.moveTo(place - 5 * scale, bottom);
    context.lineTo(place + 5 * scale, bottom);
    context.lineTo(place, bottom - 8 * scale);
    context.closePath();
    context.fill();
    context.stroke();
  }
  // The peak is one of bytes.
  if (showsPeak && answer.peak && answer.peak.bytes > 0) {
    const place = Math.round(x(answer.peak.time_ns)) + 0.5;
    context.strokeStyle = context.fillStyle = colours.peak;
    context.setLineDash([2, 3]);
    line(context, place, TOP_PX - 4, place, bottom);
    context.setLineDash([]);
    context.strokeStyle = colours.edge;
    context.beginPath();
    context.arc(inside(place), TOP_PX - 4, 3.5 * scale, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }
}

/** Paints where a heap was taken: a diamond, and a line if it is the shown one. */
function paintTaken(context: CanvasRenderingContext2D, place: number, bottom: number, colour: string, isShown: boolean): void {
  const half = 5 * Math.max(1, parseFloat(getComputedStyle(document.documentElement).fontSize) / 13);
  context.fillStyle = colour;
  context.strokeStyle = isShown ? colour : themeColour('surface');
  context.lineWidth = isShown ? 2 : 1;
  if (isShown) line(context, place, 0, place, bottom);
  context.beginPath();
  context.moveTo(place, bottom - 2 * half);
  context.lineTo(place + half, bottom - half);
  context.lineTo(place, bottom);
  context.lineTo(place - half, bottom - half);
  context.closePath();
  context.fill();
  context.stroke();
}

function paintRange(context: CanvasRenderingContext2D, fromX: number, toX: number, { widthPx, heightPx }: CanvasSize, colour: string): void {
  const bottom = heightPx - AXIS_BOTTOM_PX;
  context.fillStyle = themeColour('veil');
  const left = axisLeftPx();
  context.fillRect(left, 0, Math.max(0, fromX - left), bottom);
  context.fillRect(toX, 0, Math.max(0, widthPx - toX), bottom);
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  line(context, fromX, 0, fromX, bottom);
  line(context, toX, 0, toX, bottom);
}

function line(context: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}
