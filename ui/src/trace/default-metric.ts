/**
 * What a view ranks by and draws where nothing was chosen: what is live, or where that is the smaller
 * part, what was live at the peak.
 */
import type { Filter, OpenFile } from '../api/types';

/** A program that has freed nearly all as it ended says nothing by what is left. */
export function showsPeak(file: OpenFile, filter: Filter): boolean {
  const totals = file.trace?.totals;
  // A moment, a range or a type is a question about what is live by itself.
  const isAsked = filter.at ?? filter.range ?? filter.type ?? filter.snapshot;
  if (!totals || isAsked !== undefined || file.session?.state === 'recording') return false;
  return (totals.outstanding_bytes ?? 0) * 2 < (totals.peak_bytes ?? 0);
}

/** The sort key of tables. */
export function defaultSort(file: OpenFile, filter: Filter): string {
  return showsPeak(file, filter) ? 'peak' : 'so';
}

/** What flame graph and call tree are of. */
export function defaultValue(file: OpenFile, filter: Filter): string {
  return showsPeak(file, filter) ? 'peak_bytes' : 'outstanding_bytes';
}
