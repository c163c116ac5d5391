/** Amounts as text; sampled recordings have estimates with their intervals. */
import { UNKNOWN, exactBytes, formatBytes, formatCount } from '../format';

type Of = object;

/** Returns half of the 95 % interval; 0 for an exact count. */
export function plusMinus(row: Of, name: string): number {
  const half = (row as Record<string, unknown>)[`${name}_plus_minus`];
  return typeof half === 'number' ? half : 0;
}

/** Whether one of the amounts is an estimate. */
export function isEstimate(row: Of | null): boolean {
  return row !== null && Object.keys(row).some((name) => name.endsWith('_plus_minus'));
}

/** Formats `1.50 MiB ± 120.0 KiB`, as the command line does. */
export function amountText(row: Of, name: string): string {
  return withInterval(row, name, name.endsWith('_bytes') ? formatBytes : formatCount);
}

/** Formats `1,572,864 bytes ± 122,880 bytes`. */
export function exactAmount(row: Of, name: string): string {
  return withInterval(row, name, name.endsWith('_bytes') ? exactBytes : formatCount);
}

function withInterval(row: Of, name: string, text: (value: number) => string): string {
  return withHalf(row, name, text, text);
}

/**
 * Formats a number and half of its interval, each by its own function: only the number has a sign.
 */
export function withHalf(row: Of, name: string, text: (value: number) => string, halfText: (half: number) => string): string {
  const value = (row as Record<string, unknown>)[name];
  if (value === null) return UNKNOWN;
  return within(typeof value === 'number' ? value : 0, plusMinus(row, name), text, halfText);
}

/**
 * Formats a single number, as columns of nodes have them; without half an interval it is an exact
 * count.
 */
export function within(value: number, half: number | undefined, text: (value: number) => string, halfText: (half: number) => string = text): string {
  return `${text(value)}${half !== undefined && half > 0 ? ` ± ${halfText(half)}` : ''}`;
}

/**
 * Returns half of the interval of a sum or a difference of two estimates. For a difference it is an
 * upper bound, because both share blocks.
 */
export function halfOfBoth(one: number | undefined, other: number | undefined): number {
  return Math.round(Math.hypot(one ?? 0, other ?? 0));
}
