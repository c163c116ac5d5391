import { describe, expect, it } from 'vitest';
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
    expect([...layout.starts]).toEqual([0, 0, 70, 0, 40]);
    expect([...layout.depths]).toEqual([0, 1, 1, 2, 2]);
    expect(layout.rows.map((row) => [...row])).toEqual([[0], [1, 2], [3, 4]]);
  });

  it('finds the node at a place', () => {
    const layout = flameLayout(answer());
    expect(nodeAt(layout, 1, 69.9)).toBe(1);
    expect(nodeAt(layout, 1, 70)).toBe(2);
    expect(nodeAt(layout, 1, 95)).toBe(-1);
    expect(nodeAt(layout, 2, 45)).toBe(4);
    expect(nodeAt(layout, 9, 0)).toBe(-1);
    expect(pathTo(layout, 4)).toEqual([0, 1, 4]);
  });

  it('names what has no symbol by image and offset', () => {
    const layout = flameLayout(answer());
    expect([0, 1, 2, 4].map((node) => nodeName(layout, node))).toEqual(['all', 'main', 'parse<b>', 'libc.so.6+0xff']);
  });

  it('counts what is below a match once', () => {
    const layout = flameLayout(answer());
    expect(matching(layout, 'LIBC')).toMatchObject({ count: 2, value: 70 });
    expect(matching(layout, 'parse')).toMatchObject({ count: 2, value: 60 });
    expect(matching(layout, '  ')).toBeNull();
  });

  it('is as wide as the greater of two in a difference', () => {
    const given = answer();
    delete given.nodes.value;
    given.nodes.before = [50, 50, 0, 40, 10];
    given.nodes.after = [100, 70, 20, 30, 30];
    const layout = flameLayout(given);
    expect(layout.isDiff).toBe(true);
    expect([...layout.widths]).toEqual([100, 70, 20, 40, 30]);
  });

  it('a parent that comes later or is out of bounds is no parent', () => {
    const given = answer();
    given.nodes.parent = [-1, 7, 3, 99, 1];
    expect(() => flameLayout(given)).not.toThrow();
  });
});
