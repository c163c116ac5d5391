/** The table of crates/query/src/metrics.rs, written by its test `generated_metrics`: not to be edited. */

export interface Amounts {
  outstanding_bytes: number;
  outstanding_count: number;
  total_bytes: number;
  total_count: number;
  realloc_count: number;
  peak_bytes: number;
  peak_count: number;
  temporary_count: number;
}

/** Half of the 95 % interval of each total that is an estimate. */
export interface TotalIntervals {
  [name: `${string}_plus_minus`]: number | undefined;
}

export interface Metric {
  name: keyof Amounts;
  /** What tables are sorted by; empty: not by this. */
  key: string;
  words: string;
  heading: string;
  help: string;
  isExtra: boolean;
}

export const METRICS: Metric[] = [
  { name: 'outstanding_bytes', key: 'so', words: 'outstanding size', heading: 'Live bytes', help: 'Bytes allocated and not freed in what is counted', isExtra: false },
  { name: 'outstanding_count', key: 'soc', words: 'outstanding count', heading: 'Live', help: 'Blocks allocated and not freed', isExtra: false },
  { name: 'total_bytes', key: 'st', words: 'total size', heading: 'Total', help: 'Bytes allocated in all', isExtra: false },
  { name: 'total_count', key: 'stc', words: 'total count', heading: 'Allocs', help: 'Allocations in all', isExtra: false },
  { name: 'realloc_count', key: 'src', words: 'realloc count', heading: 'Reallocs', help: 'Allocations that came out of a realloc', isExtra: true },
  { name: 'peak_bytes', key: 'peak', words: 'size at the peak', heading: 'At peak', help: 'Bytes held at the peak of all that is counted', isExtra: false },
  { name: 'peak_count', key: '', words: 'count at the peak', heading: 'Blocks at peak', help: 'Blocks held at the peak', isExtra: true },
  { name: 'temporary_count', key: 'temporary', words: 'temporary count', heading: 'Temporary', help: 'Freed by their thread before it allocated again', isExtra: true },
];
