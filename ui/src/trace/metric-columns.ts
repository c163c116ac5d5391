/** The amounts of a group as columns: the same in every table of a trace. */
import type { Frame, Metrics } from '../api/types';
import { exactBytes, fileName, formatBytes, formatCount, formatPercent, unnamedCode } from '../format';
import type { Column } from '../table/columns';

interface Amount {
  key: keyof Metrics;
  title: string;
  help: string;
  sort?: string;
  isExtra?: boolean;
}

const AMOUNTS: Amount[] = [
  { key: 'outstanding_bytes', title: 'Live bytes', help: 'Bytes allocated and not freed in what is counted', sort: 'so' },
  { key: 'outstanding_count', title: 'Live', help: 'Blocks allocated and not freed', sort: 'soc' },
  { key: 'peak_bytes', title: 'At peak', help: 'Bytes held at the peak of all that is counted', sort: 'peak' },
  { key: 'total_bytes', title: 'Total', help: 'Bytes allocated in all', sort: 'st' },
  { key: 'total_count', title: 'Allocs', help: 'Allocations in all', sort: 'stc' },
  { key: 'temporary_count', title: 'Temporary', help: 'Freed by their thread before it allocated again', sort: 'temporary', isExtra: true },
  { key: 'realloc_count', title: 'Reallocs', help: 'Allocations that came out of a realloc', sort: 'src', isExtra: true },
  { key: 'peak_count', title: 'Blocks at peak', help: 'Blocks held at the peak', isExtra: true },
];

/** The metric that a sort key ranks by. */
export function metricOf(sort: string): keyof Metrics {
  return AMOUNTS.find((amount) => amount.sort === sort)?.key ?? 'outstanding_bytes';
}

function amountText(key: keyof Metrics, value: number): string {
  return key.endsWith('_bytes') ? formatBytes(value) : formatCount(value);
}

/** A column of percent by what is sorted by, and one for each amount. */
export function metricColumns<Row extends Metrics>(sort: string, whole: Metrics | null): Column<Row>[] {
  const ranked = metricOf(sort);
  const share: Column<Row> = {
    key: 'percent', title: '%', help: `Share of ${AMOUNTS.find((amount) => amount.key === ranked)?.title ?? ''}`, isNumber: true, width: 4,
    text: (row) => (whole ? formatPercent(row[ranked], whole[ranked]).replace(' %', '') : ''),
  };
  return [share, ...AMOUNTS.map((amount): Column<Row> => ({
    key: amount.key, title: amount.title, help: amount.help, isNumber: true, width: amount.title.length > 8 ? 7.4 : 6.6,
    ...(amount.sort !== undefined ? { sort: amount.sort } : {}), ...(amount.isExtra ? { isExtra: true } : {}),
    text: (row) => amountText(amount.key, row[amount.key]),
    exact: (row) => (amount.key.endsWith('_bytes') ? exactBytes(row[amount.key]) : formatCount(row[amount.key])),
    raw: (row) => row[amount.key],
  }))];
}

/** `libfoo.so!foo::bar(int)`, `libfoo.so+0x1234`, or `0x7f001234` outside all modules: as the command line writes it. */
export function frameName(frame: Frame): string {
  const module = frame.module === null ? null : fileName(frame.module);
  if (frame.symbol !== null) return module === null ? frame.symbol : `${module}!${frame.symbol}`;
  return unnamedCode(module ?? '', frame.offset);
}

/** `foo.cc:12`; empty if it is not known. */
export function framePlace(frame: Frame): string {
  if (frame.file === null) return '';
  return frame.line === null ? fileName(frame.file) : `${fileName(frame.file)}:${frame.line}`;
}

/** The pattern that chooses stacks with this frame. */
export function framePattern(frame: Frame): string {
  const module = frame.module === null ? '' : `${fileName(frame.module)}!`;
  return frame.symbol === null ? module : `${module}${frame.symbol}`;
}
