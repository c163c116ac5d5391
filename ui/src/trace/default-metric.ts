/** Default metric of a view: what is live, or what was live at the peak if most of it was freed. */
import type { Filter, OpenFile } from '../api/types';

/**
 * Whether the peak is shown: a program that has freed nearly everything at its end leaves little to
 * see.
 */
export function showsPeak(file: OpenFile, filter: Filter): boolean {
  const totals = file.trace?.totals;
  // A moment, a range or a type is a question about live blocks.
  const isAsked = filter.at ?? filter.range ?? filter.type ?? filter.snapshot;
  if (!totals || isAsked !== undefined || file.session?.state === 'recording') return false;
  return (totals.outstanding_bytes ?? 0) * 2 < (totals.peak_bytes ?? 0);
}

/** Returns the default sort key of tables. */
export function defaultSort(file: OpenFile, filter: Filter): string {
  return showsPeak(file, filter) ? 'peak' : 'so';
}

/** Returns the default amount of flame graph and call tree. */
export function defaultValue(file: OpenFile, filter: Filter): string {
  return showsPeak(file, filter) ? 'peak_bytes' : 'outstanding_bytes';
}
