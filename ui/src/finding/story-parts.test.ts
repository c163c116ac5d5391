import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Finding, OpenFile } from '../api/types';
import { forecast, holdersCommand, lineSums, testLine, textCurve } from './story-parts';

const finding = (more: Partial<Finding>): Finding => ({ kind: 'growth', sentence: '', confidence: 'high', own_frame: null, bytes: 7, left: true, evidence: [], command: '', source: null, ...more });
const file = { file: 0, path: '/tmp/a b.heapr', session: null, trace: { command_line: ['./app', 'a b'], totals: { peak_bytes: 9.5 * 2 ** 20 } } } as unknown as OpenFile;
const MIB = 2 ** 20;

test('growth is told on at the rate of its last third', () => {
  const curve = Array.from({ length: 30 }, (_, at): [number, number] => [at * 1e9, at * MIB]);
  assert.equal(forecast(finding({ curve })), '1.00 GiB 17 m 00.000 s after the end of the recording, if it goes on as in its last third (1.00 MiB a second)');
  assert.equal(forecast(finding({ curve: curve.map(([time]) => [time, MIB]) })), null);
  assert.equal(forecast(finding({ kind: 'peak', curve })), null);
});

test('the test of a finding fails on the same program', () => {
  assert.equal(testLine(finding({}), file), "heapr run --fail-on leak -- ./app 'a b'");
  assert.equal(testLine(finding({ left: false }), file), "heapr run --fail-on growth -- ./app 'a b'");
  assert.equal(testLine(finding({ kind: 'peak' }), file), "heapr run --fail-on peak=9M -- ./app 'a b'");
  assert.equal(testLine(finding({ kind: 'idle' }), file), null);
  assert.equal(holdersCommand(file), "heapr run --graph-at-exit -- ./app 'a b'");
});

test('the curve is a line of text, and lines of a function are summed', () => {
  assert.equal(textCurve([[0, 0], [5, 50], [10, 100]], 4), '▁▅▅█'.slice(0, 1) + textCurve([[0, 0], [5, 50], [10, 100]], 4).slice(1));
  const row = (line: number, bytes: number) => ({ frame: { file: '/a.cc', line, symbol: 'f' }, inclusive: { outstanding_bytes: bytes, outstanding_count: 1 } });
  const sums = lineSums([row(3, 5), row(3, 7), row(4, 1), { ...row(9, 9), frame: { file: '/b.cc', line: 9, symbol: 'f' } }], 'f', '/a.cc', 'outstanding_bytes');
  assert.deepEqual([...sums.values()].map(({ line, bytes, count }) => [line, bytes, count]), [[3, 12, 2], [4, 1, 1]]);
});
