/**
 * Timeline of memory, the context of all other views. Dragging brushes a range; the wheel zooms to
 * the microsecond.
 */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { addedFilter, filterOf } from '../address/address';
import { go, useAddress } from '../address/use-address';
import type { OpenFile, TimelineAnswer } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { Canvas, type CanvasSize } from '../canvas/canvas';
import { restColour, seriesColours } from '../canvas/colours';
import { Tooltip } from '../canvas/tooltip';
import { exactBytes, formatBytes, formatCount, formatDuration, parseTimeNs, plural, timeArgument } from '../format';
import { Message } from '../frame/message';
import { heapsOf, showFile } from '../frame/show-file';
import { isDrawnDark } from '../frame/theme';
import { isRecorded } from '../filter/recorded-filter';
import { linkedName } from '../image-links';
import { folded } from '../symbol-text';
import { withHalf, within } from '../trace/estimate';
import { type ChartKind, chartAmount, chartFactor, halvesOf, rateText, wholeOf } from './chart-values';
import { setCursor } from './cursor';
import { timelineEnd } from './live-tail';
import { clampSeen } from './scale';
import { axisLeftPx, heapToX, paintTimeline, timeToX, xToTime } from './timeline-paint';

const CHARTS: [ChartKind, string][] = [
  ['bytes', 'Live bytes'], ['count', 'Live blocks'], ['alloc_bytes', 'Allocated bytes per second'], ['alloc_count', 'Allocations per second'],
  ['resident', 'Resident memory'],
];
const STACKED_BY: [string, string][] = [
  ['none', 'not stacked'], ['process', 'by process'], ['thread', 'by thread'], ['image', 'by image'], ['frame', 'by frame'], ['stack', 'by stack'],
];
/** Step of the number of bins, so that resizing a window does not send a request for each pixel. */
const BIN_STEP = 100;

/** `files`: all open files; heaps among them that were taken of the recording are marked. `shown`: the heap that is shown below. */
export function Timeline({ file, files = [], shown }: { file: OpenFile; files?: OpenFile[]; shown?: OpenFile | undefined }) {
  const address = useAddress();
  const { nowNs: durationNs, askedNs } = timelineEnd(file);
  const chart = (CHARTS.find(([key]) => key === address.chart)?.[0] ?? 'bytes');
  const { seen, see } = useSeen(address.seen, durationNs, file.file);
  const [size, setSize] = useState<CanvasSize>({ widthPx: 0, heightPx: 0 });
  const [brush, setBrush] = useState<[number, number] | null>(null);
  const [hover, setHover] = useState<{ x: number; y: number; timeNs: number } | null>(null);
  const settled = useSettled([seen[0], seen[1] >= durationNs ? Infinity : seen[1]], 50);

  const filter = filterOf(address);
  delete filter.range;
  delete filter.at;
  delete filter.type;
  delete filter.snapshot;
  const bins = Math.max(BIN_STEP, Math.min(2000, Math.round((size.widthPx - axisLeftPx()) / BIN_STEP) * BIN_STEP));
  const body = size.widthPx === 0 ? null : {
    file: file.file, filter, ...askedTime(settled, askedNs), bins, by: chart === 'resident' ? 'none' : address.by, series_max: 8, value: chart,
  };
  const { data: answered, error, isLoading } = useAnswer<TimelineAnswer>('/api/timeline', body, file.generation);
  const data = useMemo(() => (address.by === 'frame' || address.by === 'stack' ? withFoldedNames(answered) : answered), [answered]);

  const heaps = heapsOf(file, files);
  const range = brush ?? rangeNs(address.range);
  const isWhole = seen[0] === 0 && seen[1] >= durationNs;
  // In a part of the time the maximum is not the peak, so that its moment is used.
  const peakAt = isWhole || !data?.peak ? 'peak' : timeArgument(data.peak.time_ns);
  const atNs = address.at === 'peak' ? (isWhole ? (data?.peak?.time_ns ?? null) : null) : address.at ? parseTimeNs(address.at) : null;
  const painting = useMemo(
    () => ({ answer: data, chart, showsRss: address.rss, seen, range, atNs, hoverNs: hover?.timeNs ?? null, heaps: heaps.map(({ taken, file: number }) => ({ timeNs: taken?.time_ns ?? 0, isShown: number === shown?.file })) }),
    [data, heaps.map(({ file: number, taken }) => `${number} ${taken?.time_ns}`).join(), shown?.file, chart, address.rss, seen[0], seen[1], range?.[0], range?.[1], atNs, hover?.timeNs],
  );
  const draw = useCallback((context: CanvasRenderingContext2D, canvasSize: CanvasSize) => paintTimeline(context, canvasSize, painting), [painting]);

  const setRange = (pair: [number, number] | null) => {
    go(pair ? { range: [timeArgument(pair[0]), timeArgument(pair[1])], at: '', snapshot: '' } : { range: [], type: '' });
  };
  const drag = useRef<{ kind: 'brush' | 'pan'; startX: number; startNs: number; seen: [number, number] } | null>(null);
  const timeOf = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return Math.max(0, Math.min(durationNs, Math.round(xToTime(event.clientX - box.left, seen, size.widthPx))));
  };
  const onPointerDown = (event: PointerEvent) => {
    if (event.button > 1) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    drag.current = { kind: event.shiftKey || event.button === 1 ? 'pan' : 'brush', startX: event.clientX, startNs: timeOf(event), seen };
  };
  const onPointerMove = (event: PointerEvent) => {
    const start = drag.current;
    const timeNs = timeOf(event);
    if (!start) {
      setHover({ x: event.clientX, y: event.clientY, timeNs });
      setCursor(timeNs);
      return;
    }
    setHover(null);
    setCursor(null);
    if (start.kind === 'pan') {
      const perPx = (start.seen[1] - start.seen[0]) / Math.max(1, size.widthPx - axisLeftPx());
      const shift = (start.startX - event.clientX) * perPx;
      see(start.seen[0] + shift, start.seen[1] + shift);
    } else if (Math.abs(event.clientX - start.startX) > 2) {
      setBrush([Math.min(start.startNs, timeNs), Math.max(start.startNs, timeNs)]);
    }
  };
  const onPointerUp = (event: PointerEvent) => {
    const start = drag.current;
    drag.current = null;
    if (start?.kind !== 'brush') return;
    if (brush && brush[1] > brush[0]) setRange(brush);
    else if (heapAt(localX(event))) showFile(heapAt(localX(event)) ?? file, shown ?? file);
    else if (!shown && snapshotAt(localX(event))) go({ view: 'snapshots', number: snapshotAt(localX(event))?.number ?? -1 });
    else if (data?.peak && Math.abs(timeToX(data.peak.time_ns, seen, size.widthPx) - localX(event)) < 6) go({ at: peakAt, range: [], snapshot: '' });
    setBrush(null);
  };
  const heapAt = (xPx: number) => heaps.find(({ taken }) => {
    const place = heapToX(taken?.time_ns ?? 0, seen, size.widthPx);
    return place !== null && Math.abs(place - xPx) < 6;
  });
  const snapshotAt = (xPx: number) => data?.snapshots.find((snapshot) => snapshot.number !== undefined && Math.abs(timeToX(snapshot.time_ns, seen, size.widthPx) - xPx) < 6);
  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const span = seen[1] - seen[0];
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const shift = ((event.deltaX || event.deltaY) / Math.max(1, size.widthPx)) * span;
      see(seen[0] + shift, seen[1] + shift);
      return;
    }
    const at = timeOf(event);
    const factor = Math.exp(event.deltaY * 0.002);
    const from = at - (at - seen[0]) * factor;
    see(from, from + span * factor);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const span = seen[1] - seen[0];
    const middle = (seen[0] + seen[1]) / 2;
    const steps: Record<string, () => void> = {
      ArrowLeft: () => see(seen[0] - span / 8, seen[1] - span / 8),
      ArrowRight: () => see(seen[0] + span / 8, seen[1] + span / 8),
      '+': () => see(middle - span / 4, middle + span / 4),
      '=': () => see(middle - span / 4, middle + span / 4),
      '-': () => see(middle - span, middle + span),
      '0': () => see(0, durationNs),
      Enter: () => setRange(seen),
      Escape: () => setRange(null),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    step();
  };

  return (
    <section class="timeline" aria-label="Timeline">
      <div class="timeline-tools">
        <select aria-label="Timeline shows" value={chart} onChange={(event) => go({ chart: event.currentTarget.value })}>
          {CHARTS.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
        </select>
        <select aria-label="Timeline stacked by" disabled={chart === 'resident'} value={chart === 'resident' ? 'none' : address.by} onChange={(event) => go({ by: event.currentTarget.value })}>
          {STACKED_BY.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
        </select>
        {(data?.rss.length ?? 0) > 0 && (
          <label class="check"><input type="checkbox" checked={address.rss} onChange={() => go({ rss: !address.rss })} /> RSS</label>
        )}
        {chart === 'bytes' && data?.peak && data.peak.bytes > 0 && (
          <button
            type="button" class={`button is-peak${address.at !== '' && address.at === peakAt ? ' is-on' : ''}`} aria-pressed={address.at === peakAt}
            title={`${withHalf(data.peak, 'bytes', exactBytes, exactBytes)} in ${withHalf(data.peak, 'count', (count) => plural(count, 'block'), formatCount)} at ${formatDuration(data.peak.time_ns)}: show what was live then`}
            onClick={() => go(address.at === peakAt ? { at: '' } : { at: peakAt, range: [], snapshot: '' })}
          >
            {isWhole ? 'Peak' : 'Most here'} {withHalf(data.peak, 'bytes', formatBytes, formatBytes)} at {formatDuration(data.peak.time_ns)}
          </button>
        )}
        {range && (
          <>
            <button type="button" class="button" title="Zoom to the brushed range" onClick={() => see(range[0], range[1])}>
              {formatDuration(range[0])} – {formatDuration(range[1])} ({formatDuration(range[1] - range[0])})
            </button>
            {chart === 'bytes' && data && <RangeRate data={data} range={range} />}
            <button type="button" class="button" aria-label="Remove the range" title="Remove the range (Escape)" onClick={() => setRange(null)}>×</button>
          </>
        )}
        {!isWhole && <button type="button" class="button" title="See the whole time (0)" onClick={() => see(0, durationNs)}>Whole time</button>}
        <span class="grow" />
        {isLoading && data && <span class="quiet" role="status">loading…</span>}
        <Legend file={file} data={data} showsRss={address.rss && chart === 'bytes' && (data?.rss.length ?? 0) > 0} />
      </div>
      {error && <Message kind="error">{error.message}</Message>}
      <div class="timeline-plot">
        <Canvas
          draw={draw} onSize={setSize} onPointerDown={onPointerDown} onPointerMove={onPointerMove} onPointerUp={onPointerUp} onWheel={onWheel}
          onKeyDown={onKeyDown} onPointerLeave={() => { setHover(null); setCursor(null); }} onDblClick={() => see(0, durationNs)}
          label={`${CHARTS.find(([key]) => key === chart)?.[1] ?? ''} over ${formatDuration(durationNs)}${data?.peak ? `, peak ${withHalf(data.peak, 'bytes', formatBytes, formatBytes)} at ${formatDuration(data.peak.time_ns)}` : ''}. Arrow keys move, plus and minus zoom, Enter brushes what is seen.`}
        >
          {hover && data && <HoverBox hover={hover} data={data} chart={chart} showsRss={address.rss} heaps={heaps} />}
        </Canvas>
        {data?.note && <p class="timeline-waits quiet" role="note">{data.note}</p>}
        {!data && !error && <p class="timeline-waits quiet" role="status">reading events…</p>}
      </div>
    </section>
  );
}

/** Returns the answer with short names of frames and stacks. */
function withFoldedNames(data: TimelineAnswer | null): TimelineAnswer | null {
  return data && { ...data, series: data.series.map((series) => ({ ...series, name: folded(series.name), wholeName: series.name })) };
}

/** Rate at which live bytes rise or fall over the brushed range. */
function RangeRate({ data, range }: { data: TimelineAnswer; range: [number, number] }) {
  const binNs = (data.to_ns - data.from_ns) / data.bins;
  const bin = (timeNs: number) => Math.max(0, Math.min(data.bins - 1, Math.floor((timeNs - data.from_ns) / binNs)));
  // The end of a range may lie behind what was read of a running session.
  const [fromNs, toNs] = [Math.max(range[0], data.from_ns), Math.min(range[1], data.to_ns)];
  const [first, last] = [bin(fromNs), bin(toNs - 1)];
  const seconds = (toNs - fromNs) / 1e9;
  if (seconds <= 0 || last <= first) return null;
  return <span class="range-rate" title="Live bytes at the end of the range less those at its beginning, and how much that is a second">{rateText(data, first, last, seconds)}</span>;
}

function localX(event: MouseEvent): number {
  return event.clientX - (event.currentTarget as HTMLElement).getBoundingClientRect().left;
}

function wholeName(series: { name: string; wholeName?: string }): string {
  return series.wholeName ?? series.name;
}

/** Legend with names and colours of the series; a click adds the filter of a series. */
function Legend({ file, data, showsRss }: { file: OpenFile; data: TimelineAnswer | null; showsRss: boolean }) {
  const address = useAddress();
  if (!data || data.series.length === 0) return null;
  const colours = seriesColours(data.series.map((series) => series.name), isDrawnDark());
  return (
    <ul class="legend" aria-label="Series">
      {data.series.map((series, place) => (
        <li key={series.id ?? series.name}>
          <button
            type="button" disabled={!series.filter || !isRecorded(file.file, { ...filterOf(address), ...series.filter })} title={series.filter ? `Only what is counted for ${wholeName(series)}` : wholeName(series)}
            onClick={() => series.filter && go(addedFilter(address, series.filter))}
          >
            <i class="swatch" style={{ background: colours[place] ?? '' }} />
            <span>{address.by === 'image' ? linkedName(series.name) : series.name}</span>
          </button>
        </li>
      ))}
      {showsRss && <li><i class="swatch is-rss" />RSS</li>}
      {data.rest.some((value) => value > 0) && <li><i class="swatch" style={{ background: restColour(isDrawnDark()) }} />rest</li>}
    </ul>
  );
}

function HoverBox({ hover, data, chart, showsRss, heaps }: { hover: { x: number; y: number; timeNs: number }; data: TimelineAnswer; chart: ChartKind; showsRss: boolean; heaps: OpenFile[] }) {
  const address = useAddress();
  const bin = Math.floor(((hover.timeNs - data.from_ns) / (data.to_ns - data.from_ns)) * data.bins);
  if (bin < 0 || bin >= data.bins) return null;
  const factor = chartFactor(chart, data);
  const told = (value: number, half: number | undefined) => within(value, half, (amount) => chartAmount(chart, amount * factor));
  const marker = data.markers.find((candidate) => Math.abs(candidate.time_ns - hover.timeNs) < ((data.to_ns - data.from_ns) / data.bins) * 4);
  const near = ((data.to_ns - data.from_ns) / data.bins) * 6;
  const heap = heaps.find(({ taken }) => Math.abs((taken?.time_ns ?? 0) - hover.timeNs) < near);
  const snapshot = data.snapshots.find((candidate) => Math.abs(candidate.time_ns - hover.timeNs) < near);
  const colours = seriesColours(data.series.map((series) => series.name), isDrawnDark());
  const layers = [
    ...data.series.map((series, place) => ({ name: series.name, place, colour: colours[place] ?? '', value: series.values[bin] ?? 0, half: series.values_plus_minus?.[bin] })),
    ...(data.series.length > 0 ? [{ name: 'rest', place: -1, colour: restColour(isDrawnDark()), value: data.rest[bin] ?? 0, half: data.rest_plus_minus?.[bin] }] : []),
  ];
  return (
    <Tooltip x={hover.x} y={hover.y}>
      <strong>{formatDuration(hover.timeNs)}</strong>
      <div>{told(wholeOf(chart, data)[bin] ?? 0, halvesOf(chart, data)?.[bin])}{chart === 'bytes' && data.most_bytes.length > 0 ? ` (most ${within(data.most_bytes[bin] ?? 0, data.most_bytes_plus_minus?.[bin], formatBytes)})` : ''}</div>
      {layers.filter((layer) => layer.value > 0).reverse().map((layer) => (
        <div key={layer.place} class="tooltip-row">
          <span><i class="swatch" style={{ background: layer.colour }} />{address.by === 'image' ? linkedName(layer.name) : layer.name}</span>
          <span>{told(layer.value, layer.half)}</span>
        </div>
      ))}
      {showsRss && chart === 'bytes' && data.rss.map((rss) => {
        const at = rss.time_ns.findLastIndex((timeNs) => timeNs <= hover.timeNs);
        return at < 0 ? null : <div key={rss.pid} class="tooltip-row"><span>RSS of {rss.pid}</span><span>{formatBytes(rss.rss_bytes[at] ?? 0)}</span></div>;
      })}
      {snapshot && <div class="quiet">snapshot {snapshot.number} {snapshot.name}{snapshot.block_bytes === undefined ? '' : `: ${withHalf(snapshot, 'block_bytes', formatBytes, formatBytes)}`} {snapshot.trigger ? `(${snapshot.trigger})` : ''}: a click shows it</div>}
      {heap && <div class="quiet">{heap.name} of process {heap.taken?.pid}, by its name and the time of its file: a click shows it</div>}
      {marker && <div class="quiet">marker: {marker.text}</div>}
    </Tooltip>
  );
}

/**
 * Time for which a moving view is the timeline's alone: a new address redraws the whole page, which
 * would lengthen each frame.
 */
const MOVES_MS = 150;

function useSeen(pair: string[], durationNs: number, file: number): { seen: [number, number]; see: (fromNs: number, toNs: number) => void } {
  const [moving, setMoving] = useState<[number, number] | null>(null);
  const timer = useRef(0);
  const stop = () => {
    clearTimeout(timer.current);
    setMoving(null);
  };
  // The end of a running session moves each second, which must not undo a zoom.
  useEffect(() => stop, [pair.join(), file]);
  const see = (fromNs: number, toNs: number) => {
    const [from, to] = clampSeen(fromNs, toNs, durationNs);
    setMoving([from, to]);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      setMoving(null);
      go({ seen: from === 0 && to >= durationNs ? [] : [String(from), String(to)] }, true);
    }, MOVES_MS);
  };
  return { seen: moving ?? seenOf(pair, durationNs), see };
}

/** Returns the time to ask for; `Infinity` is the end, which does not change with each second. */
function askedTime([from, to]: [number, number], askedNs: number): { from_ns: number; to_ns: number } {
  return { from_ns: Math.max(0, Math.min(from, askedNs - 1)), to_ns: Math.min(to, askedNs) };
}

function seenOf(pair: string[], durationNs: number): [number, number] {
  const [from, to] = pair.map(Number);
  if (from === undefined || to === undefined || !(to > from)) return [0, durationNs];
  return clampSeen(from, to, durationNs);
}

function rangeNs(pair: string[]): [number, number] | null {
  const [from, to] = [parseTimeNs(pair[0] ?? ''), parseTimeNs(pair[1] ?? '')];
  return from === null || to === null ? null : [from, to];
}

/**
 * Returns the value once it has not changed for `waitMs`, so that a zoom in progress sends no
 * requests.
 */
function useSettled(pair: [number, number], waitMs: number): [number, number] {
  const [settled, setSettled] = useState(pair);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(pair), waitMs);
    return () => clearTimeout(timer);
  }, [pair[0], pair[1]]);
  return settled;
}
