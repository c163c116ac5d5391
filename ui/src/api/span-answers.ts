/** Answers to requests with a range or a frame, computed from the sums of a page without a server. */
import { parseTimeNs, shellWords, timeArgument } from '../format';
import type { SpansAnswer } from './answers';
import { METRICS } from './metrics';
import { neighbours } from './span-frame';
import { SpanSums, type StackAmounts, TEMPORARY_BYTES, TOLD } from './span-sums';
import type { Filter } from './trace-types';

interface Asked {
  file?: number;
  filter?: Filter;
  by?: string;
  sort?: string;
  by_own?: boolean;
  by_line?: boolean;
  descending?: boolean;
  match?: string;
  offset?: number;
  limit?: number;
  frames_max?: number;
  value?: string;
  direction?: string;
  root?: string | null;
  focus?: string | null;
  frame?: string;
  collapse_recursion?: boolean;
  bins?: number;
  from_ns?: number | null;
  to_ns?: number | null;
}

type Amounts = Record<string, number | null>;

const known = new Map<number, SpanSums | null>();

/** Returns the sums of a file, if the page has them. */
export function sumsOf(file: number, find: (path: string, body: object) => unknown): SpanSums | null {
  const found = known.get(file);
  if (found !== undefined) return found;
  const answer = find('/api/spans', { file }) as SpansAnswer | undefined;
  const sums = answer ? new SpanSums(answer) : null;
  known.set(file, sums);
  return sums;
}

/** Whether sums answer a filter: a range, and frames that stacks have. */
export function isOfSpans(filter: Filter): boolean {
  const { range: _range, require_frames: _frames, ...rest } = filter;
  return Object.values(rest).every((value) => value === false || value === '' || value === undefined || (Array.isArray(value) && value.length === 0));
}

/** Returns a range whose ends lie between two spans; at least one span long. */
export function snapped(sums: SpanSums, range: readonly string[]): [string, string] {
  const [first, end] = places(sums, range);
  return [timeArgument(sums.bordersNs[first] ?? 0), timeArgument(sums.bordersNs[end] ?? 0)];
}

function places(sums: SpanSums, range: readonly string[]): [number, number] {
  const last = sums.bordersNs.length - 1;
  if (range.length !== 2) return [0, last];
  const [from, to] = range.map((text) => sums.nearest(parseTimeNs(text) ?? 0)) as [number, number];
  const first = Math.min(from, last - 1);
  return [first, Math.max(first + 1, to)];
}

/** Returns the answer to a request; undefined if the sums do not tell it. */
export function answerOfSpans(sums: SpanSums, path: string, body: unknown): unknown {
  const asked = (body ?? {}) as Asked;
  const filter = asked.filter ?? {};
  if (!isOfSpans(filter)) return undefined;
  const [first, end] = places(sums, filter.range ?? []);
  const patterns = filter.require_frames ?? [];
  if (path === '/api/timeline') return timeline(sums, asked, patterns);
  const amounts = () => sums.amounts({ first, end, patterns });
  const words = [...(filter.range ? ['--range', ...snapped(sums, filter.range)] : []), ...patterns.flatMap((pattern) => ['--require-frames', pattern])];
  const command = (action: string) => (sums.answer.path === '' ? null : [shellWords(['heapr', 'report', sums.answer.path]), action, ...(words.length > 0 ? [shellWords(words)] : [])].join(' '));
  if (path === '/api/report') return report(sums, asked, amounts(), command);
  if (path === '/api/functions' && !asked.by_line) return functions(sums, asked, amounts(), command);
  if (path === '/api/flame' && !asked.by_line && !asked.root && !asked.focus) return flame(sums, asked, amounts(), command);
  if (path === '/api/frame' && !asked.by_line) return frameAnswer(sums, asked, amounts(), command);
  return undefined;
}

/** Amounts of nothing. A range has no peak of its own here. */
const none = (amounts: StackAmounts): Amounts => Object.fromEntries(TOLD.map((name, at) => [name, amounts[at] === undefined ? null : 0]));

function add(into: Amounts, amounts: StackAmounts, stack: number): void {
  TOLD.forEach((name, at) => {
    const column = amounts[at];
    if (column) into[name] = (into[name] ?? 0) + (column[stack] ?? 0);
  });
}

/** Name of the metric of a sort key, if it is known. */
function metricOf(sort: string | undefined, amounts: StackAmounts): string {
  const name = METRICS.find((metric) => metric.key === sort)?.name ?? 'outstanding_bytes';
  return amounts[TOLD.indexOf(name)] === undefined ? 'outstanding_bytes' : name;
}

function totalsOf(all: Amounts) {
  return {
    alloc_count: all['total_count'], alloc_bytes: all['total_bytes'], free_count: null, realloc_count: all['realloc_count'], failed_count: 0, outstanding_count: all['outstanding_count'],
    outstanding_bytes: all['outstanding_bytes'], temporary_count: all['temporary_count'], peak_bytes: all['peak_bytes'], peak_count: all['peak_count'], peak_time_ns: 0, unmatched_frees: 0, inherited_frees: 0, implied_frees: 0,
  };
}

function frameOf(sums: SpanSums, frame: number) {
  const { frames, names } = sums.answer;
  const told = frames[frame];
  const name = (at: number | undefined) => names[at ?? 0] || null;
  return { module: name(told?.module), symbol: name(told?.symbol), file: null, line: null, inlined: false, offset: told?.offset ?? 0 };
}

/** The own frame of a stack, with its line. */
function ownOf(sums: SpanSums, stack: number, frames: number[]) {
  const { names, stacks } = sums.answer;
  const place = stacks.own[stack] ?? -1;
  if (place < 0) return {};
  return { own: { place, ...frameOf(sums, frames[place] ?? -1), file: names[stacks.own_file[stack] ?? 0] || null, line: stacks.own_line[stack] || null } };
}

interface SpanGroup {
  id: string | null;
  stack: number;
  frames: number[];
  amounts: Amounts;
}

/** Rows by stack, by innermost frame or by module. */
function groupsOf(sums: SpanSums, by: string, amounts: StackAmounts): SpanGroup[] {
  const { frames, stacks, names } = sums.answer;
  const groups = new Map<string, SpanGroup>();
  const counts = amounts[3];
  stacks.id.forEach((id, stack) => {
    if ((counts?.[stack] ?? 0) === 0) return;
    const path = sums.framesOf(stack);
    const inner = path[0] ?? -1;
    const key = by === 'stacks' ? id : by === 'frames' ? String(inner) : (names[frames[inner]?.module ?? 0] ?? '');
    let group = groups.get(key);
    if (!group) {
      group = { id: by === 'stacks' ? id : by === 'frames' ? (frames[inner]?.id ?? null) : null, stack: by === 'stacks' ? stack : -1, frames: by === 'stacks' ? path : path.slice(0, 1), amounts: none(amounts) };
      groups.set(key, group);
    }
    add(group.amounts, amounts, stack);
  });
  return [...groups.values()];
}

function report(sums: SpanSums, asked: Asked, amounts: StackAmounts, command: (action: string) => string | null) {
  const by = asked.by ?? 'stacks';
  if (!['stacks', 'frames', 'images'].includes(by)) return undefined;
  const metric = metricOf(asked.sort, amounts);
  const all = none(amounts);
  sums.answer.stacks.id.forEach((_, stack) => add(all, amounts, stack));
  const groups = groupsOf(sums, by, amounts).sort((a, b) => (b.amounts[metric] ?? 0) - (a.amounts[metric] ?? 0));
  const text = (asked.match ?? '').toLowerCase();
  const hasText = (group: SpanGroup) => group.frames.some((frame) => {
    const { symbol, module } = frameOf(sums, frame);
    return `${module ?? ''}!${symbol ?? ''}`.toLowerCase().includes(text);
  });
  const wanted = text === '' ? groups : groups.filter(hasText);
  const ordered = asked.descending === false ? [...wanted].reverse() : wanted;
  const matched = none(amounts);
  for (const group of wanted) {
    for (const name of TOLD) if (group.amounts[name] != null) matched[name] = (matched[name] ?? 0) + (group.amounts[name] ?? 0);
  }
  const [offset, limit] = [asked.offset ?? 0, asked.limit ?? 200];
  const row = ({ id, frames, stack, amounts: of }: SpanGroup) => {
    const images = by === 'images';
    const shown = frames.slice(0, asked.frames_max ?? 16).map((frame) => (images ? { ...frameOf(sums, frame), symbol: null, offset: 0 } : frameOf(sums, frame)));
    return { id, frames: shown, frame_count: frames.length, ...ownOf(sums, stack, frames), ...of };
  };
  return {
    schema: 'heapr.view.report/1', command: command(`--${by} ${asked.sort ?? 'so'}`), totals: totalsOf(all), heaps: [], group_count: groups.length, match_count: wanted.length, all, matched, offset,
    groups: ordered.slice(offset, offset + limit).map(row),
  };
}

function functions(sums: SpanSums, asked: Asked, amounts: StackAmounts, command: (action: string) => string | null) {
  const { frames, stacks } = sums.answer;
  const rows = new Map<number, { inclusive: Amounts; own: Amounts }>();
  const all = none(amounts);
  stacks.id.forEach((_, stack) => {
    if ((amounts[3]?.[stack] ?? 0) === 0) return;
    add(all, amounts, stack);
    const path = sums.framesOf(stack);
    for (const frame of new Set(path)) {
      const row = rows.get(frame) ?? { inclusive: none(amounts), own: none(amounts) };
      rows.set(frame, row);
      add(row.inclusive, amounts, stack);
      if (frame === path[0]) add(row.own, amounts, stack);
    }
  });
  const metric = metricOf(asked.sort, amounts);
  const part = asked.by_own ? 'own' : 'inclusive';
  const text = (asked.match ?? '').toLowerCase();
  const wanted = [...rows]
    .map(([frame, row]) => ({ id: frames[frame]?.id ?? '', frame: frameOf(sums, frame), is_own: frames[frame]?.is_own === true, ...row }))
    .filter(({ frame }) => text === '' || `${frame.module ?? ''}!${frame.symbol ?? ''}`.toLowerCase().includes(text))
    .sort((a, b) => (b[part][metric] ?? 0) - (a[part][metric] ?? 0));
  if (asked.descending === false) wanted.reverse();
  const [offset, limit] = [asked.offset ?? 0, asked.limit ?? 200];
  return { schema: 'heapr.view.functions/1', command: command(`--functions ${asked.sort ?? 'so'}`), totals: totalsOf(all), function_count: rows.size, match_count: wanted.length, offset, functions: wanted.slice(offset, offset + limit) };
}

/** A frame with its callers and callees. */
function frameAnswer(sums: SpanSums, asked: Asked, amounts: StackAmounts, command: (action: string) => string | null) {
  const { frames } = sums.answer;
  const wanted = frames.findIndex((frame) => frame.id === asked.frame);
  if (wanted < 0) return undefined;
  const metric = metricOf(asked.sort, amounts);
  const found = neighbours(sums, amounts, wanted, () => none(amounts), (into, stack) => add(into, amounts, stack));
  const listed = (groups: Map<number, Amounts>) => [...groups]
    .sort(([first, a], [second, b]) => (b[metric] ?? 0) - (a[metric] ?? 0) || first - second)
    .map(([frame, of]) => ({ id: frames[frame]?.id ?? '', frame: frameOf(sums, frame), ...of }));
  const [callers, callees] = [listed(found.callers), listed(found.callees)];
  const limit = asked.limit ?? 200;
  const frame = frameOf(sums, wanted);
  return {
    schema: 'heapr.view.frame/1', command: frame.symbol === null ? null : command(`--callers ${shellWords([frame.symbol])} ${asked.sort ?? 'so'}`), id: asked.frame, frame, inclusive: found.inclusive, self: found.own,
    callers: callers.slice(0, limit), caller_count: callers.length, callees: callees.slice(0, limit), callee_count: callees.length,
  };
}

/** Least share of the whole that a box has. */
const LEAST_SHARE = 0.0005;

function flame(sums: SpanSums, asked: Asked, amounts: StackAmounts, command: (action: string) => string | null) {
  const { frames, names, stacks } = sums.answer;
  const column = amounts[asked.value === 'temporary_bytes' ? TEMPORARY_BYTES : TOLD.indexOf((asked.value ?? 'outstanding_bytes') as typeof TOLD[number])];
  if (!column) return undefined;
  interface Box { frame: number; parent: Box | null; value: number; own: number; below: Map<number, Box> }
  const root: Box = { frame: -1, parent: null, value: 0, own: 0, below: new Map() };
  stacks.id.forEach((_, stack) => {
    const value = column[stack] ?? 0;
    if (value === 0) return;
    const path = sums.framesOf(stack);
    if (asked.direction !== 'bottom-up') path.reverse();
    let box = root;
    box.value += value;
    for (const frame of path) {
      if (asked.collapse_recursion && frame === box.frame) continue;
      let next = box.below.get(frame);
      if (!next) {
        next = { frame, parent: box, value: 0, own: 0, below: new Map() };
        box.below.set(frame, next);
      }
      next.value += value;
      box = next;
    }
    box.own += value;
  });
  const nodes = { id: [] as string[], parent: [] as number[], frame: [] as number[], value: [] as number[], self: [] as number[], left_out: [] as number[] };
  const least = root.value * LEAST_SHARE;
  // Stacks may be deeper than calls of a script can be.
  const waiting: [Box, number][] = [[root, -1]];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [box, parent] = next;
    const at = nodes.id.length;
    nodes.id.push(`n0.${at}`);
    nodes.parent.push(parent);
    nodes.frame.push(box.frame);
    nodes.value.push(box.value);
    nodes.self.push(box.own);
    const children = [...box.below.values()].sort((a, b) => b.value - a.value);
    nodes.left_out.push(children.filter((child) => child.value < least).reduce((sum, child) => sum + child.value, 0));
    for (const child of children.filter((one) => one.value >= least).reverse()) waiting.push([child, at]);
  }
  return { schema: 'heapr.view.flame/1', command: command(asked.direction === 'bottom-up' ? '--frames' : '--invert'), value: asked.value ?? 'outstanding_bytes', total: root.value, node_count: nodes.id.length, names, frames, nodes };
}

/** Course of what is live of stacks with some frames, at the borders of the spans. */
function timeline(sums: SpanSums, asked: Asked, patterns: string[]) {
  const value = asked.value ?? 'bytes';
  if (!['bytes', 'count'].includes(value)) return undefined;
  const bins = asked.bins ?? 600;
  const whole = sums.bordersNs.at(-1) ?? 0;
  const [from, to] = [asked.from_ns ?? 0, asked.to_ns ?? whole];
  const { bytes, count } = sums.course(patterns);
  const at = (bin: number) => {
    const ns = from + ((to - from) * (bin + 1)) / bins;
    let border = 0;
    while (border + 1 < sums.bordersNs.length && (sums.bordersNs[border + 1] ?? 0) <= ns) border += 1;
    return border;
  };
  const over = (values: number[]) => Array.from({ length: bins }, (_, bin) => values[at(bin)] ?? 0);
  // What happens between two borders is not told.
  const unknown: number[] = [];
  const [live, blocks] = [over(bytes), over(count)];
  return {
    schema: 'heapr.view.timeline/1', note: null, from_ns: from, to_ns: to, bins, live_bytes: live, live_count: blocks, most_bytes: unknown, alloc_bytes: unknown, alloc_count: unknown, free_count: unknown,
    series: [], resident_bytes: unknown, rest: value === 'count' ? blocks : live, rss: [], markers: [], snapshots: [], peak: null,
  };
}
