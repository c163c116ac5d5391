/** Amounts of a timeline's charts, as numbers and as text. */
import type { TimelineAnswer } from '../api/types';
import { formatBytes, formatCount, formatSignedBytes } from '../format';
import { halfOfBoth, within } from '../trace/estimate';

export type ChartKind = 'bytes' | 'count' | 'alloc_bytes' | 'alloc_count' | 'resident';

/** Formats an amount of the chart; rates are per second. */
export function chartAmount(chart: ChartKind, value: number): string {
  if (chart === 'bytes' || chart === 'resident') return formatBytes(value);
  if (chart === 'count') return formatCount(value);
  return chart === 'alloc_bytes' ? `${formatBytes(value)}/s` : `${formatCount(value)}/s`;
}

/** Returns the factor of the answer's values: rates come as amounts per bin. */
export function chartFactor(chart: ChartKind, answer: TimelineAnswer): number {
  if (chart === 'bytes' || chart === 'count' || chart === 'resident') return 1;
  const binNs = (answer.to_ns - answer.from_ns) / answer.bins;
  return binNs > 0 ? 1e9 / binNs : 0;
}

/** Returns the curve of the whole, above which the stacked series never rise. */
export function wholeOf(chart: ChartKind, answer: TimelineAnswer): number[] {
  return { bytes: answer.live_bytes, count: answer.live_count, alloc_bytes: answer.alloc_bytes, alloc_count: answer.alloc_count, resident: answer.resident_bytes }[chart];
}

/** Largest axis in times the live bytes: on a larger one their area would be too low to be read. */
const RSS_TIMES = 2.5;

/** Returns the most that was resident. */
export function mostRss(answer: TimelineAnswer): number {
  return answer.rss.flatMap(({ rss_bytes }) => rss_bytes).reduce((most, value) => Math.max(most, value), 0);
}

/** Returns the upper end of an axis of live bytes, up to `most`, that shows resident memory, too. */
export function mostWithRss(most: number, answer: TimelineAnswer): number {
  const rss = mostRss(answer);
  return most > 0 ? Math.max(most, Math.min(rss, most * RSS_TIMES)) : rss;
}

/** Returns for each bin half of the interval of the whole, if it is an estimate. */
export function halvesOf(chart: ChartKind, answer: TimelineAnswer): number[] | undefined {
  return { bytes: answer.live_bytes_plus_minus, count: answer.live_count_plus_minus, alloc_bytes: answer.alloc_bytes_plus_minus, alloc_count: answer.alloc_count_plus_minus, resident: undefined }[chart];
}

/**
 * Formats the change of live bytes between two bins: `+1.50 MiB ± 120.0 KiB, +300.0 KiB ± 24.0
 * KiB/s`.
 */
export function rateText(answer: TimelineAnswer, first: number, last: number, seconds: number): string {
  const change = (answer.live_bytes[last] ?? 0) - (answer.live_bytes[first] ?? 0);
  const half = halfOfBoth(answer.live_bytes_plus_minus?.[first], answer.live_bytes_plus_minus?.[last]);
  const each = (value: number, plusMinus: number) => within(value, plusMinus, formatSignedBytes, formatBytes);
  return `${each(change, half)}, ${each(Math.round(change / seconds), Math.round(half / seconds))}/s`;
}
