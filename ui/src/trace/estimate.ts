/** Amounts as text: of a recording of samples they are estimates, and say how sure they are. */
import { UNKNOWN, exactBytes, formatBytes, formatCount } from '../format';

type Of = object;

/** Half of the 95 % interval; 0: it was counted. */
export function plusMinus(row: Of, name: string): number {
  const half = (row as Record<string, unknown>)[`${name}_plus_minus`];
  return typeof half === 'number' ? half : 0;
}

/** Whether one of the amounts is an estimate. */
export function isEstimate(row: Of | null): boolean {
  return row !== null && Object.keys(row).some((name) => name.endsWith('_plus_minus'));
}

/** `1.50 MiB ± 120.0 KiB`, as the command line writes it. */
export function amountText(row: Of, name: string): string {
  return withInterval(row, name, name.endsWith('_bytes') ? formatBytes : formatCount);
}

/** `1,572,864 bytes ± 122,880 bytes`. */
export function exactAmount(row: Of, name: string): string {
  return withInterval(row, name, name.endsWith('_bytes') ? exactBytes : formatCount);
}

function withInterval(row: Of, name: string, text: (value: number) => string): string {
  return withHalf(row, name, text, text);
}

/** A number, and half of its interval in words of its own: a difference has a sign. */
export function withHalf(row: Of, name: string, text: (value: number) => string, halfText: (half: number) => string): string {
  const value = (row as Record<string, unknown>)[name];
  if (value === null) return UNKNOWN;
  return within(typeof value === 'number' ? value : 0, plusMinus(row, name), text, halfText);
}

/** The same of a number by itself, as columns of nodes have them; without half an interval it was counted. */
export function within(value: number, half: number | undefined, text: (value: number) => string, halfText: (half: number) => string = text): string {
  return `${text(value)}${half !== undefined && half > 0 ? ` ± ${halfText(half)}` : ''}`;
}

/** Half of the interval of a sum or a difference of two, each estimated on its own: what is in both makes that of a difference smaller. */
export function halfOfBoth(one: number | undefined, other: number | undefined): number {
  return Math.round(Math.hypot(one ?? 0, other ?? 0));
}
