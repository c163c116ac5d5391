import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FlameAnswer } from '../api/types';
import { flameLayout, matching, nodeAt, nodeName, pathTo } from './flame-layout';

function answer(): FlameAnswer {
  return {
    command: null, value: 'outstanding_bytes', total: 100, node_count: 5,
    names: ['', 'main', '/usr/lib/libc.so.6', 'parse<b>'],
    frames: [
      { id: 'f0', symbol: 1, module: 2, offset: 0 },
      { id: 'f1', symbol: 3, module: 0, offset: 16 },
      { id: 'f2', symbol: 0, module: 2, offset: 255 },
    ],
    nodes: {
      id: ['n0', 'n1', 'n2', 'n3', 'n4'], parent: [-1, 0, 0, 1, 1], frame: [-1, 0, 1, 1, 2], value: [100, 70, 20, 40, 30],
      self: [10, 0, 20, 40, 30], left_out: [0, 0, 0, 0, 0],
    },
  };
}

describe('the layout of a flame graph', () => {
  it('places each node behind its sibling, inside its parent', () => {
    const layout = flameLayout(answer());
    assert.deepEqual([...layout.starts], [0, 0, 70, 0, 40]);
    assert.deepEqual([...layout.depths], [0, 1, 1, 2, 2]);
    assert.deepEqual(layout.rows.map((row) => [...row]), [[0], [1, 2], [3, 4]]);
  });

  it('finds the node at a place', () => {
    const layout = flameLayout(answer());
    assert.equal(nodeAt(layout, 1, 69.9), 1);
    assert.equal(nodeAt(layout, 1, 70), 2);
    assert.equal(nodeAt(layout, 1, 95), -1);
    assert.equal(nodeAt(layout, 2, 45), 4);
    assert.equal(nodeAt(layout, 9, 0), -1);
    assert.deepEqual(pathTo(layout, 4), [0, 1, 4]);
  });

  it('names what has no symbol by image and offset', () => {
    const layout = flameLayout(answer());
    assert.deepEqual([0, 1, 2, 4].map((node) => nodeName(layout, node)), ['all', 'main', 'parse<b>', 'libc.so.6+0xff']);
  });

  it('counts what is below a match once', () => {
    const layout = flameLayout(answer());
    assert.deepEqual([matching(layout, 'LIBC')?.count, matching(layout, 'LIBC')?.value], [2, 70]);
    assert.deepEqual([matching(layout, 'parse')?.count, matching(layout, 'parse')?.value], [2, 60]);
    assert.equal(matching(layout, '  '), null);
  });

  it('is as wide as the greater of two in a difference', () => {
    const given = answer();
    delete given.nodes.value;
    given.nodes.before = [50, 50, 0, 40, 10];
    given.nodes.after = [100, 70, 20, 30, 30];
    const layout = flameLayout(given);
    assert.equal(layout.isDiff, true);
    assert.deepEqual([...layout.widths], [100, 70, 20, 40, 30]);
  });

  it('a parent that comes later or is out of bounds is no parent', () => {
    const given = answer();
    given.nodes.parent = [-1, 7, 3, 99, 1];
    assert.doesNotThrow(() => flameLayout(given));
  });
});
