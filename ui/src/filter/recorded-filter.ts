/**
 * Filters with answers in a page without a server. Others are refused with a message before a view
 * would fail.
 */
import { type Address, filterOf, parseAddress } from '../address/address';
import { isStatic, recordedAddress, recordedFilters, spanSums } from '../api/client';
import { isOfSpans, snapped } from '../api/span-answers';
import type { Filter } from '../api/types';

/** Returns a filter as text, equal for equal filters. */
function textOf(filter: Filter): string {
  return JSON.stringify(Object.entries(filter).filter(([, value]) => value !== false && value !== '').sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Whether the page has answers for a filter. Snapshots have views of their own, which say what is
 * missing.
 */
export function isRecorded(file: number, filter: Filter): boolean {
  if (!isStatic() || filter.snapshot) return true;
  const { hide_known: _, ...asked } = filter;
  return isListed(file, asked) || (isOfSpans(asked) && spanSums(file) !== null);
}

/** Whether the answers of a filter are in the page themselves. */
function isListed(file: number, asked: Filter): boolean {
  const given = filterOf(parseAddress(recordedAddress()));
  const known: Filter[] = [{}, { at: 'peak' }, given, { ...given, at: 'peak' }, ...recordedFilters().filter((choice) => choice.file === file).map((choice) => choice.filter)];
  return known.some((candidate) => textOf(candidate) === textOf(asked));
}

/** Returns an address whose range lies between the spans of a page without a server. */
export function withSpans(next: Address): Address {
  if (!isStatic() || next.range.length !== 2) return next;
  const { range } = next;
  const { hide_known: _, ...asked } = filterOf(next);
  const sums = isListed(next.file, asked) ? null : spanSums(next.file);
  return sums === null ? next : { ...next, range: snapped(sums, range) };
}

/** Returns why an address is refused; `null` if it is accepted. */
export function refusal(next: Address, current: Address): string | null {
  if (!isStatic()) return null;
  const [wanted, now] = [filterOf(next), filterOf(current)];
  if (textOf(wanted) !== textOf(now) && !isRecorded(next.file, wanted)) return 'This page has no answers for that filter: Filter lists those that it has, and a range or a frame can be chosen.';
  if (next.focus !== '' && next.focus !== current.focus) return 'This page has no flame graphs of single functions.';
  return null;
}
