import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  exactBytes, fileName, formatAxisTime, formatBytes, formatCount, formatDuration, formatPercent, formatSignedBytes, parseBytes,
  parseTimeNs, shellWords, timeArgument,
} from './format';

describe('numbers', () => {
  it('bytes are written as the command line writes them', () => {
    const cases: [number, string][] = [
      [0, '0 B'], [1023, '1023 B'], [1024, '1.00 KiB'], [10230, '9.99 KiB'], [10240, '10.0 KiB'], [1023948, '999.9 KiB'],
      [1023949, '0.98 MiB'], [123731968, '118.0 MiB'], [-2048, '-2.00 KiB'],
    ];
    for (const [bytes, text] of cases) assert.equal(formatBytes(bytes), text);
    assert.equal(formatBytes(1024 * 1024 * 1023.99), '1.00 GiB');
    assert.equal(formatSignedBytes(12), '+12 B');
    assert.equal(formatSignedBytes(0), '0 B');
    assert.equal(exactBytes(1), '1 byte');
    assert.equal(exactBytes(1234567), '1,234,567 bytes');
  });

  it('counts have commas', () => {
    assert.equal(formatCount(0), '0');
    assert.equal(formatCount(999), '999');
    assert.equal(formatCount(1000), '1,000');
    assert.equal(formatCount(-1234567), '-1,234,567');
    assert.equal(formatPercent(1, 0), '0.0 %');
    assert.equal(formatPercent(1, 3), '33.3 %');
  });

  it('durations choose their unit', () => {
    assert.equal(formatDuration(123), '123 ns');
    assert.equal(formatDuration(8900), '8.90 µs');
    assert.equal(formatDuration(56_700_000), '56.7 ms');
    assert.equal(formatDuration(1_234_000_000), '1.234 s');
    assert.equal(formatDuration(65_004e6), '1 m 05.004 s');
    assert.equal(formatDuration(3723e9), '1 h 02 m 03 s');
  });

  it('axis times tell neighbouring ticks apart', () => {
    assert.equal(formatAxisTime(1_000_001_000, 1_000), '1.000001 s');
    assert.equal(formatAxisTime(2e9, 1e9), '2 s');
    assert.equal(formatAxisTime(5400e9, 600e9), '1 h 30 m');
    assert.equal(formatAxisTime(1_500_000, 500_000), '1.5 ms');
  });

  it('what is written as an argument reads back exactly', () => {
    for (const ns of [0, 1, 999, 1000, 1_500, 1_000_000, 123_456_789, 5e9]) assert.equal(parseTimeNs(timeArgument(ns)), ns);
    assert.equal(parseTimeNs('1500'), 1_500_000);
    for (const [text, ns] of [['1h30m', 5400e9], ['1 h 02 m 03.5 s', 3723.5e9], ['2min', 120e9]] as const) assert.equal(parseTimeNs(text), ns);
    for (const text of ['x', '30m 1h', '1m 2m', '1h 30', '5 minutes', '']) assert.equal(parseTimeNs(text), null, text);
    assert.equal(parseBytes('1.5K'), 1536);
    assert.equal(parseBytes('2 MiB'), 2 * 1024 * 1024);
    assert.equal(parseBytes('12q'), null);
  });

  it('a file name is what is behind the last slash', () => {
    assert.equal(fileName('/usr/lib/libc.so.6'), 'libc.so.6');
    assert.equal(fileName('plain'), 'plain');
  });

  it('words are written as a shell reads them', () => {
    assert.equal(shellWords(['redis-server', '--save', '', "it's", 'a b', '/x/y-1.0']), "redis-server --save '' 'it'\\''s' 'a b' /x/y-1.0");
  });
});
