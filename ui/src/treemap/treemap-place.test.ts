import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { place } from './treemap-place';

describe('what a treemap leaves out', () => {
  const nodes = { id: [null, 'a'], parent: [-1, 0], name: [0, 1], value: [100, 40], self: [0, 40], left_out: [60, 0] };
  const rest = (more: object) => place({ names: ['all', 'a'], nodes: { ...nodes, ...more } }, { widthPx: 600, heightPx: 400 }, 20).find((placed) => placed.rest !== undefined);

  it('has an area, and an interval where it is an estimate', () => {
    assert.deepEqual([rest({})?.rest, rest({})?.restHalf], [60, 0]);
    const half = rest({ value_plus_minus: [10, 6], left_out_plus_minus: [8, 0] })?.restHalf;
    assert.equal(half, 8);
  });
});
