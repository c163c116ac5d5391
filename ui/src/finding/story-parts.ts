/** Parts of a finding's story that are computed on the page: forecast, test, next command. */
import type { ExamplesAnswer, Finding, GraphHolder, OpenFile } from '../api/types';
import { formatBytes, formatDuration, plural, shellWords } from '../format';

/** Share of the curve, from its end, whose rate is told on. */
const LAST_PART = 1 / 3;

/**
 * Returns what growth will cost if it goes on as in the last third: "2.00 GiB in 21 m"; null for
 * anything that does not grow.
 */
export function forecast(finding: Finding): string | null {
  const { curve } = finding;
  if (finding.kind !== 'growth' || !curve || curve.length < 4) return null;
  const last = curve.at(-1);
  const first = curve.at(Math.floor(curve.length * (1 - LAST_PART)));
  if (!last || !first || last[0] <= first[0]) return null;
  const perNs = (last[1] - first[1]) / (last[0] - first[0]);
  if (perNs <= 0) return null;
  let goal = 2 ** 30;
  while (goal < last[1] * 4) goal *= 2;
  const restNs = (goal - last[1]) / perNs;
  if (!Number.isFinite(restNs) || restNs > 3.2e16) return null;
  return `${formatBytes(goal)} ${formatDuration(roughNs(restNs))} after the end of the recording, if it goes on as in its last third (${formatBytes(perNs * 1e9)} a second)`;
}

/** A forecast has no milliseconds: minutes from one minute on, else seconds. */
function roughNs(ns: number): number {
  const unit = ns >= 60e9 ? 60e9 : 1e9;
  return Math.max(1, Math.round(ns / unit)) * unit;
}

/** Returns the command that fails if the program has this finding again; null if no test sees it. */
export function testLine(finding: Finding, file: OpenFile): string | null {
  const program = shellWords(file.trace?.command_line ?? []) || 'PROGRAM';
  const kinds: Partial<Record<Finding['kind'], string>> = {
    growth: finding.left ? 'leak' : 'growth', churn: 'churn', peak: `peak=${roundedSize(file.trace?.totals?.peak_bytes ?? finding.bytes)}`,
  };
  const kind = kinds[finding.kind];
  return kind ? `heapr run --fail-on ${kind} -- ${program}` : null;
}

/** A size as the command line takes it: less than the peak, so that the test fails now. */
function roundedSize(bytes: number): string {
  const mib = Math.floor(bytes / 2 ** 20);
  return mib >= 2 ? `${mib}M` : `${Math.max(1, Math.floor(bytes / 1024))}K`;
}

/** Returns the command that tells who holds the memory. */
export function holdersCommand(file: OpenFile): string {
  const session = file.session;
  if (session && (session.state === 'recording' || session.state === 'full')) return `heapr snapshot take ${shellWords([session.name])} --graph`;
  if (lastGraph(file) !== null) return `heapr snapshot holders ${shellWords([file.path])}`;
  return `heapr run --graph-at-exit -- ${shellWords(file.trace?.command_line ?? []) || 'PROGRAM'}`;
}

/** Returns the number of the last snapshot with references; null if there is none. */
export function lastGraph(file: OpenFile): number | null {
  return (file.trace?.snapshots ?? []).findLast((snapshot) => snapshot.has_graph)?.number ?? null;
}

/** Returns what a holder holds: "2.00 MiB in 300 blocks". */
export function heldText(holder: GraphHolder): string {
  return `${formatBytes(holder.retained_bytes)} in ${plural(holder.retained_count, 'block')}`;
}

const BARS = '▁▂▃▄▅▆▇█';

/** Returns the curve as a line of text. */
export function textCurve(curve: [number, number][], width = 40): string {
  const most = Math.max(1, ...curve.map(([, bytes]) => bytes));
  const end = curve.at(-1)?.[0] ?? 0;
  return Array.from({ length: width }, (_, at) => {
    const timeNs = ((at + 1) * end) / width;
    const bytes = curve.findLast(([time]) => time <= timeNs)?.[1] ?? 0;
    return BARS[Math.min(BARS.length - 1, Math.floor((bytes / most) * BARS.length))];
  }).join('');
}

/** Parts of a story. */
export interface Story {
  finding: Finding;
  source: { first_line: number; lines: string[]; is_newer: boolean } | null;
  /** What each line of the function allocates, by line. */
  sums: Map<number, LineSum>;
  examples: ExamplesAnswer['blocks'];
  cost: string | null;
  test: string | null;
  /** What holds most of the heap, if a snapshot has references. */
  held: GraphHolder[];
  /** Command that tells all holders. */
  holders: string;
}

/** Line of the function, with what it allocates. */
export interface LineSum {
  file: string | null;
  line: number;
  bytes: number;
  count: number;
}

/** Returns the sums by line of one file, from rows of functions by line. */
export function lineSums(rows: { frame: { file: string | null; line: number | null; symbol: string | null } | null; inclusive: object }[], symbol: string, file: string, metric: string): Map<number, LineSum> {
  const sums = new Map<number, LineSum>();
  for (const { frame, inclusive } of rows) {
    if (!frame || frame.symbol !== symbol || frame.file !== file || frame.line === null) continue;
    const amounts = inclusive as Record<string, unknown>;
    const bytes = Number(amounts[metric] ?? 0);
    const count = Number(amounts[metric.replace('bytes', 'count')] ?? 0);
    const known = sums.get(frame.line);
    sums.set(frame.line, { file, line: frame.line, bytes: (known?.bytes ?? 0) + bytes, count: (known?.count ?? 0) + count });
  }
  return sums;
}

/** Returns the part of a source that has the function's lines, with a few before and behind. */
export function partOfSource<Source extends { first_line: number; lines: string[] }>(source: Source, lines: number[], around = 4): Source {
  if (lines.length === 0) return source;
  const first = Math.max(source.first_line, Math.min(...lines) - around);
  const last = Math.min(source.first_line + source.lines.length - 1, Math.max(...lines) + around);
  if (last < first) return source;
  return { ...source, first_line: first, lines: source.lines.slice(first - source.first_line, last - source.first_line + 1) };
}
