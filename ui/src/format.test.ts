import { describe, expect, it } from 'vitest';
import {
  exactBytes, fileName, formatAxisTime, formatBytes, formatCount, formatDuration, formatPercent, formatSignedBytes, parseBytes,
  parseTimeNs, timeArgument,
} from './format';

describe('numbers', () => {
  it('bytes are written as the command line writes them', () => {
    const cases: [number, string][] = [
      [0, '0 B'], [1023, '1023 B'], [1024, '1.00 KiB'], [10230, '9.99 KiB'], [10240, '10.0 KiB'], [1023948, '999.9 KiB'],
      [1023949, '0.98 MiB'], [123731968, '118.0 MiB'], [-2048, '-2.00 KiB'],
    ];
    for (const [bytes, text] of cases) expect(formatBytes(bytes)).toBe(text);
    expect(formatBytes(1024 * 1024 * 1023.99)).toBe('1.00 GiB');
    expect(formatSignedBytes(12)).toBe('+12 B');
    expect(formatSignedBytes(0)).toBe('0 B');
    expect(exactBytes(1)).toBe('1 byte');
    expect(exactBytes(1234567)).toBe('1,234,567 bytes');
  });

  it('counts have commas', () => {
    expect(formatCount(0)).toBe('0');
    expect(formatCount(999)).toBe('999');
    expect(formatCount(1000)).toBe('1,000');
    expect(formatCount(-1234567)).toBe('-1,234,567');
    expect(formatPercent(1, 0)).toBe('0.0 %');
    expect(formatPercent(1, 3)).toBe('33.3 %');
  });

  it('durations choose their unit', () => {
    expect(formatDuration(123)).toBe('123 ns');
    expect(formatDuration(8900)).toBe('8.90 µs');
    expect(formatDuration(56_700_000)).toBe('56.7 ms');
    expect(formatDuration(1_234_000_000)).toBe('1.234 s');
    expect(formatDuration(3723e9)).toBe('1 h 02 min 03 s');
  });

  it('axis times tell neighbouring ticks apart', () => {
    expect(formatAxisTime(1_000_001_000, 1_000)).toBe('1.000001 s');
    expect(formatAxisTime(2e9, 1e9)).toBe('2 s');
    expect(formatAxisTime(1_500_000, 500_000)).toBe('1.5 ms');
  });

  it('what is written as an argument reads back exactly', () => {
    for (const ns of [0, 1, 999, 1000, 1_500, 1_000_000, 123_456_789, 5e9]) expect(parseTimeNs(timeArgument(ns))).toBe(ns);
    expect(parseTimeNs('1500')).toBe(1_500_000);
    expect(parseTimeNs('x')).toBeNull();
    expect(parseBytes('1.5K')).toBe(1536);
    expect(parseBytes('2 MiB')).toBe(2 * 1024 * 1024);
    expect(parseBytes('12q')).toBeNull();
  });

  it('a file name is what is behind the last slash', () => {
    expect(fileName('/usr/lib/libc.so.6')).toBe('libc.so.6');
    expect(fileName('plain')).toBe('plain');
  });
});
