/** Columns of a group's amounts, the same in every table of a trace. */
import { type Amounts, METRICS } from '../api/metrics';
import type { Frame } from '../api/types';
import { fileName, formatPercent, unnamedCode } from '../format';
import type { Column } from '../table/columns';
import { amountText, exactAmount, isEstimate } from './estimate';

/** Returns the metric of a sort key. */
export function metricOf(sort: string): keyof Amounts {
  return METRICS.find((metric) => metric.key === sort)?.name ?? 'outstanding_bytes';
}

/** Returns a metric's title in choices, in the words of its column. */
export function metricTitle({ name, words }: (typeof METRICS)[number]): string {
  const title = { outstanding_bytes: 'live bytes', outstanding_count: 'live blocks' }[name as string] ?? words;
  return title.charAt(0).toUpperCase() + title.slice(1);
}

/** Returns a column of percent for the sorted metric, and one for each amount. */
export function metricColumns<Row extends Amounts>(sort: string, whole: Amounts | null): Column<Row>[] {
  const ranked = metricOf(sort);
  const share: Column<Row> = {
    key: 'percent', title: '%', help: `Share of ${METRICS.find((metric) => metric.name === ranked)?.heading ?? ''}`, isNumber: true, width: 4,
    text: (row) => (whole ? formatPercent(row[ranked], whole[ranked]).replace(' %', '') : ''),
  };
  return [share, ...METRICS.map(({ name, key, heading, help, isExtra }): Column<Row> => ({
    key: name, title: heading, help, isNumber: true, width: isEstimate(whole) ? 12 : heading.length > 8 ? 7.4 : 6.6,
    ...(key !== '' ? { sort: key } : {}), ...(isExtra ? { isExtra } : {}),
    text: (row) => amountText(row, name),
    exact: (row) => exactAmount(row, name),
    raw: (row) => row[name],
  }))];
}

/**
 * Formats a frame as the command line does: `libfoo.so!foo::bar(int)`, `libfoo.so+0x1234`, or
 * `0x7f001234` outside all modules.
 */
export function frameName(frame: Frame): string {
  const module = frame.module === null ? null : fileName(frame.module);
  if (frame.symbol !== null) return module === null ? frame.symbol : `${module}!${frame.symbol}`;
  return unnamedCode(module ?? '', frame.offset);
}

/** Formats a location, as in `foo.cc:12`; empty if it is unknown. */
export function framePlace(frame: Frame): string {
  if (frame.file === null) return '';
  return frame.line === null ? fileName(frame.file) : `${fileName(frame.file)}:${frame.line}`;
}

/**
 * Whether a function has no name of its own, by the words of script languages for such functions.
 */
export function isNameless(frame: Frame): boolean {
  return /^\((?!anonymous namespace)|<lambda>$|__ANON__$|^\{closure/.test(frame.symbol ?? '');
}

/** Returns the pattern that selects stacks with this frame. */
export function framePattern(frame: Frame): string {
  const module = frame.module === null ? '' : `${fileName(frame.module)}!`;
  return frame.symbol === null ? module : `${module}${frame.symbol}`;
}
