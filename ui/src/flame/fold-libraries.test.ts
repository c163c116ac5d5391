import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FlameAnswer } from '../api/types';
import { flameLayout, nodeName } from './flame-layout';
import { foldLibraries } from './fold-libraries';

// all -> start(lib) -> run(lib) -> main(own) -> push(lib) -> grow(lib) -> alloc(lib), and push2(lib)
const answer: FlameAnswer = {
  command: null, value: 'outstanding_bytes', total: 100, node_count: 8, names: ['', 'start', 'run', 'main', 'push', 'grow', 'alloc', 'push2'],
  frames: [1, 2, 3, 4, 5, 6, 7].map((symbol) => ({ id: `f${symbol}`, symbol, module: 0, offset: 0, ...(symbol === 3 ? { is_own: true } : {}) })),
  nodes: {
    id: ['n0', 'n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7'], parent: [-1, 0, 1, 2, 3, 4, 5, 3], frame: [-1, 0, 1, 2, 3, 4, 5, 6], value: [100, 100, 95, 90, 60, 50, 40, 30],
    self: [0, 5, 5, 0, 10, 10, 40, 30], left_out: [0, 0, 0, 0, 0, 0, 0, 0],
  },
};

test('libraries that call one another are one box, and all sums stay', () => {
  const folded = foldLibraries(answer);
  assert.deepEqual(folded.nodes.id, ['n0', 'n1', 'n3', 'n4', 'n7']);
  assert.deepEqual(folded.nodes.parent, [-1, 0, 1, 2, 2]);
  assert.deepEqual(folded.nodes.value, [100, 100, 90, 60, 30]);
  assert.deepEqual(folded.nodes.self, [0, 10, 0, 60, 30]);
  assert.equal(folded.nodes.self?.reduce((sum, bytes) => sum + bytes, 0), 100);
  assert.deepEqual(folded.merged, [0, 1, 0, 2, 0]);
  const layout = flameLayout(folded);
  assert.equal(nodeName(layout, 3), 'push +2');
  assert.equal(nodeName(layout, 2), 'main');
});

test('a graph that does not tell whose code it is stays as it is', () => {
  const nameless = { ...answer, frames: answer.frames.map(({ is_own: _, ...frame }) => frame) };
  assert.equal(foldLibraries(nameless), nameless);
});

test('an image that is collapsed is one box below each caller, with its name, and all sums stay', () => {
  const modules = [0, 8, 8, 0, 9, 9, 9];
  const ofImages: FlameAnswer = { ...answer, names: [...answer.names, '/lib/libstart.so', '/lib/libpush.so'], frames: answer.frames.map((frame, at) => ({ ...frame, module: modules[at + 1] ?? 9 })) };
  const collapsed = foldLibraries(ofImages, { libraries: false, images: ['libpush.so'] });
  assert.deepEqual(collapsed.nodes.id, ['n0', 'n1', 'n2', 'n3', 'n4']);
  assert.deepEqual(collapsed.nodes.value, [100, 100, 95, 90, 90]);
  assert.equal(collapsed.nodes.self?.reduce((sum, bytes) => sum + bytes, 0), 100);
  assert.equal(nodeName(flameLayout(collapsed), 4), 'libpush.so +3');
  assert.deepEqual(collapsed.joined, [false, false, false, false, true]);
  const both = foldLibraries(ofImages, { libraries: true, images: ['libpush.so'] });
  assert.deepEqual(both.nodes.id, ['n0', 'n1', 'n3', 'n4']);
});
