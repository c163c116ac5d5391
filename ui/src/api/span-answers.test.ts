import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SpansAnswer } from './answers';
import { answerOfSpans, isOfSpans, snapped } from './span-answers';
import { SpanSums, isFrame } from './span-sums';

/**
 * Three spans of 10 ns. `leak` (called by `main`) allocates 100 bytes in each span and frees none;
 * `churn` allocates 8 bytes in span 0 that are freed in span 1, and in span 2 that are freed there.
 */
const ANSWER: SpansAnswer = {
  schema: '', path: '/t/a.heapr', ends_ns: [10, 20, 30], names: ['', '/bin/app', 'main', 'leak', 'churn(int)', '/src/a.c'],
  frames: [{ id: 'f0', symbol: 2, module: 1, offset: 0 }, { id: 'f1', symbol: 3, module: 1, offset: 0, is_own: true }, { id: 'f2', symbol: 4, module: 1, offset: 0 }],
  nodes: { parent: [-1, 0, 0], frame: [0, 1, 2] },
  stacks: { id: ['s1.1', 's2.2'], node: [1, 2], own: [0, -1], own_file: [5, 0], own_line: [7, 0], peak_bytes: [200, 16], peak_count: [2, 2] },
  sums: { stack: [0, 0, 0, 1, 0], born: [0, 1, 1, -2, 2], freed: [-1, -1, -1, 1, 0], count: [1, 1, 1, 2, 3], bytes: [100, 100, 100, 16, 24], realloc_count: [0, 0, 0, 0, 0], temporary_count: [0, 0, 0, 0, 3], temporary_bytes: [0, 0, 0, 0, 24] },
};
const sums = new SpanSums(ANSWER);
interface Told { groups: { id: string; outstanding_bytes: number; total_count: number; peak_bytes: null }[]; match_count: number; command: string }
const rows = (filter: object, more: object = {}) => answerOfSpans(sums, '/api/report', { file: 0, filter, by: 'stacks', sort: 'so', ...more }) as Told;
const told = (answer: Told) => answer.groups.map((group) => [group.id, group.outstanding_bytes, group.total_count]);

test('a range counts what is allocated in it, and what is not freed before its end', () => {
  assert.deepEqual(told(rows({})), [['s1.1', 300, 3], ['s2.2', 0, 5]]);
  assert.deepEqual(told(rows({ range: ['0', '10ns'] })), [['s1.1', 100, 1], ['s2.2', 16, 2]]);
  assert.deepEqual(told(rows({ range: ['10ns', '30ns'] })), [['s1.1', 200, 2], ['s2.2', 0, 3]]);
  assert.equal(rows({ range: ['10ns', '30ns'] }).command, 'heapr report /t/a.heapr --stacks so --range 10ns 30ns');
});

test('ends of a range move to the nearest border, and a peak is not told', () => {
  assert.deepEqual(snapped(sums, ['9ns', '11ns']), ['10ns', '20ns']);
  assert.equal(rows({ range: ['0', '10ns'] }).groups[0]?.peak_bytes, null);
  assert.equal(isOfSpans({ size: ['1', '2'] }), false);
  assert.equal(answerOfSpans(sums, '/api/report', { filter: { at: '5ns' } }), undefined);
});

test('frames and a search leave the rest out', () => {
  assert.deepEqual(told(rows({ require_frames: ['app!churn'] })), [['s2.2', 0, 5]]);
  assert.equal(rows({}, { match: 'LEAK' }).match_count, 1);
  assert.ok(isFrame('libc!', '/usr/lib/libc.so.6', 'malloc') && isFrame('*urn', '/bin/app', 'churn(int)') === true && !isFrame('app!main', '/bin/other', 'main'));
});

test('flame graph, functions and course are of the same sums', () => {
  const flame = answerOfSpans(sums, '/api/flame', { filter: {}, value: 'total_bytes', direction: 'top-down' }) as { total: number; nodes: { value: number[]; frame: number[] } };
  assert.deepEqual([flame.total, flame.nodes.value, flame.nodes.frame], [340, [340, 340, 300, 40], [-1, 0, 1, 2]]);
  const functions = answerOfSpans(sums, '/api/functions', { filter: {}, sort: 'so' }) as { functions: { id: string; inclusive: { outstanding_bytes: number } }[] };
  assert.deepEqual(functions.functions.map((row) => [row.id, row.inclusive.outstanding_bytes]).sort(), [['f0', 300], ['f1', 300], ['f2', 0]]);
  assert.deepEqual(sums.course([]).bytes, [0, 116, 200, 300]);
});

test('the peak is of the whole time, and the own frame has its line', () => {
  const told = rows({}, { sort: 'peak' }).groups as unknown as { id: string; peak_bytes: number; own?: { file: string; line: number } }[];
  assert.deepEqual(told.map((group) => [group.id, group.peak_bytes, group.own?.file, group.own?.line]), [['s1.1', 200, '/src/a.c', 7], ['s2.2', 16, undefined, undefined]]);
  const total = (value: string) => (answerOfSpans(sums, '/api/flame', { filter: {}, value, direction: 'top-down' }) as { total: number }).total;
  assert.deepEqual([total('peak_bytes'), total('peak_count'), total('temporary_bytes')], [216, 4, 24]);
  assert.equal(answerOfSpans(sums, '/api/flame', { filter: { range: ['0', '10ns'] }, value: 'peak_bytes' }), undefined);
});

test('a frame has its callers and callees, and a recursion that is collapsed is one box', () => {
  const frame = answerOfSpans(sums, '/api/frame', { filter: {}, frame: 'f0', sort: 'so', limit: 50 }) as { command: string; inclusive: { total_bytes: number }; self: { total_bytes: number }; callers: unknown[]; callees: { id: string; total_bytes: number }[] };
  assert.deepEqual([frame.inclusive.total_bytes, frame.self.total_bytes, frame.callers, frame.callees.map((one) => [one.id, one.total_bytes])], [340, 0, [], [['f1', 300], ['f2', 40]]]);
  assert.equal(frame.command, 'heapr report /t/a.heapr --callers main so');
  const deep = new SpanSums({ ...ANSWER, nodes: { parent: [-1, 0, 1], frame: [0, 0, 1] }, stacks: { ...ANSWER.stacks, node: [2, 2] } });
  const boxes = (more: object) => (answerOfSpans(deep, '/api/flame', { filter: {}, value: 'total_bytes', direction: 'top-down', ...more }) as { nodes: { frame: number[] } }).nodes.frame;
  assert.deepEqual([boxes({}), boxes({ collapse_recursion: true })], [[-1, 0, 0, 1], [-1, 0, 1]]);
});
