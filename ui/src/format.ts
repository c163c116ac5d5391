/** Formats bytes, counts and times as the command line does. */

/** Text for an amount that its source does not have. */
export const UNKNOWN = 'unknown';

const BYTE_UNITS = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

/** Formats bytes, as in `1.50 MiB`: three digits or more, never more than the value has. */
export function formatBytes(bytes: number | null): string {
  if (bytes === null) return UNKNOWN;
  const sign = bytes < 0 ? '-' : '';
  const magnitude = Math.abs(bytes);
  if (magnitude < 1024) return `${sign}${Math.round(magnitude)} B`;
  let value = magnitude / 1024;
  let unit = 0;
  // 999.95 would be printed as 1000.0.
  while (value >= 999.95 && unit + 1 < BYTE_UNITS.length) {
    value /= 1024;
    unit += 1;
  }
  return `${sign}${value.toFixed(value < 9.995 ? 2 : 1)} ${BYTE_UNITS[unit]}`;
}

/** Formats a count, as in `1,234,567`. */
export function formatCount(count: number | null): string {
  if (count === null) return UNKNOWN;
  const sign = count < 0 ? '-' : '';
  return sign + String(Math.round(Math.abs(count))).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Formats a change in bytes: `+1.50 MiB`, `-12 B`, `0 B`. */
export function formatSignedBytes(delta: number): string {
  return (delta > 0 ? '+' : '') + formatBytes(delta);
}

/** Formats a change in a count: `+1,234`, `-12`, `0`. */
export function formatSignedCount(delta: number): string {
  return (delta > 0 ? '+' : '') + formatCount(delta);
}

/** Formats a share, as in `12.3 %`; a share of 0 is 0. */
export function formatPercent(part: number | null, whole: number | null): string {
  if (part === null || whole === null) return UNKNOWN;
  return `${(whole === 0 ? 0 : (part * 100) / whole).toFixed(1)} %`;
}

/**
 * Formats a duration: `2 h 03 m 04 s`, `5 m 06.789 s`, `1.234 s`, `56.7 ms`, `8.90 µs`, `123 ns`.
 */
export function formatDuration(durationNs: number): string {
  const ns = Math.round(durationNs);
  if (ns < 0) return `-${formatDuration(-ns)}`;
  if (ns < 1e3) return `${ns} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(2)} µs`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(1)} ms`;
  if (ns < 60e9) return `${(ns / 1e9).toFixed(3)} s`;
  const two = (value: number | string) => String(value).padStart(2, '0');
  if (ns < 3600e9) {
    const milliseconds = Math.floor(ns / 1e6);
    return `${Math.floor(milliseconds / 60_000)} m ${((milliseconds % 60_000) / 1000).toFixed(3).padStart(6, '0')} s`;
  }
  const seconds = Math.floor(ns / 1e9);
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} m ${two(seconds % 60)} s`;
}

/**
 * Formats a time on an axis whose ticks are `stepNs` apart, with enough digits to distinguish two
 * ticks.
 */
export function formatAxisTime(timeNs: number, stepNs: number): string {
  const [unit, name]: [number, string] =
    timeNs === 0 ? [1, 's'] : timeNs >= 1e9 ? [1e9, 's'] : timeNs >= 1e6 ? [1e6, 'ms'] : timeNs >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  if (timeNs === 0) return '0 s';
  if (timeNs >= 60e9 && stepNs >= 1e9) {
    const seconds = Math.round(timeNs / 1e9);
    const parts: [number, string][] = [[Math.floor(seconds / 3600), 'h'], [Math.floor(seconds / 60) % 60, 'm'], [seconds % 60, 's']];
    return parts.flatMap(([value, unit]) => (value > 0 ? [`${value} ${unit}`] : [])).join(' ');
  }
  const decimals = Math.max(0, Math.min(9, Math.ceil(-Math.log10(stepNs / unit) - 1e-9)));
  return `${(timeNs / unit).toFixed(decimals)} ${name}`;
}

/** Formats the exact value for a tooltip: `1,234,567 bytes`. */
export function exactBytes(bytes: number | null): string {
  if (bytes === null) return UNKNOWN;
  return `${formatCount(bytes)} ${Math.abs(bytes) === 1 ? 'byte' : 'bytes'}`;
}

/** Formats a count with its noun: `1 block`, `1,234 blocks`. */
export function plural(count: number | null, what: string): string {
  if (count === null) return `an unknown number of ${what}s`;
  return `${formatCount(count)} ${what}${count === 1 ? '' : 's'}`;
}

/** Quotes words for a shell: `redis-server --save ''`. */
export function shellWords(words: string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ');
}

/** Formats an exact time for the command line: `1500us`, `17ns`. */
export function timeArgument(timeNs: number): string {
  const ns = Math.round(timeNs);
  if (ns % 1e9 === 0) return `${ns / 1e9}s`;
  if (ns % 1e6 === 0) return `${ns / 1e6}ms`;
  if (ns % 1e3 === 0) return `${ns / 1e3}us`;
  return `${ns}ns`;
}

const TIME_UNITS: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, m: 60e9, min: 60e9, h: 3600e9 };

/**
 * Parses `1500`, `1.5ms`, `2 s`, `1h 30m`, in microseconds without a unit. Returns null for
 * anything else.
 */
export function parseTimeNs(text: string): number | null {
  const bare = /^\s*(\d+(?:\.\d*)?|\.\d+)\s*$/.exec(text);
  if (bare) return Math.round(Number(bare[1]) * 1e3);
  const parts = [...text.matchAll(/\s*(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|µs|ms|min|m|s|h)(?![a-z])\s*/giy)];
  if (parts.length === 0 || parts.map((part) => part[0]).join('') !== text) return null;
  const units = parts.map((part) => TIME_UNITS[part[2]?.toLowerCase() ?? ''] ?? 0);
  if (units.some((unit, at) => at > 0 && unit >= (units[at - 1] ?? 0))) return null;
  return Math.round(parts.reduce((sum, part, at) => sum + Number(part[1]) * (units[at] ?? 0), 0));
}

/** Parses `4096`, `1.5K`, `2 MiB`. Returns null for anything else. */
export function parseBytes(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(?:i?b)?\s*$/i.exec(text);
  if (!match) return null;
  const power = ['', 'k', 'm', 'g', 't'].indexOf((match[2] ?? '').toLowerCase());
  return Math.round(Number(match[1]) * 1024 ** power);
}

/** Returns the part of a path after its last slash. */
export function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1) || path;
}

/**
 * Names code without a symbol: `libfoo.so+0x1234`, or `0x7f001234` outside all modules. A module's
 * first byte is not code; offset 0 stands for allocations without a stack (`allocated before
 * attach`).
 */
export function unnamedCode(module: string, offset: number): string {
  const place = `0x${offset.toString(16)}`;
  if (module === '') return place;
  return offset === 0 ? module : `${module}+${place}`;
}
