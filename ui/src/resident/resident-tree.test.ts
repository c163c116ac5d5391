import assert from 'node:assert/strict';
import { test } from 'node:test';
import { residentTree } from './resident-tree';

const line = (key: string, bytes: number, parts: [string, number][] = []) => ({ class: key, label: key, bytes, bytes_plus_minus: 0, shared_bytes: 0, note: '', parts: parts.map(([name, bytes]) => ({ name, bytes })) });

test('the whole is the sum of its classes, and parts lie in their class', () => {
  const tree = residentTree([line('code', 70, [['libc', 50], ['jq', 20]]), line('files', 30, [['a', 30]])], 'process 1');
  assert.deepEqual(tree.nodes.value, [100, 70, 50, 20, 30]);
  assert.deepEqual(tree.nodes.parent, [-1, 0, 1, 1, 0]);
  assert.deepEqual(tree.classes, ['', 'code', 'code', 'code', 'files']);
});

test('nothing resident is one empty area', () => {
  assert.deepEqual(residentTree([], '').nodes.value, [0]);
});
