import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { squarify } from './treemap-layout';

describe('a treemap', () => {
  it('gives each value its share of the area, inside the box, without overlap', () => {
    const values = [60, 60, 40, 30, 20, 20, 10];
    const boxes = squarify(values, { x: 5, y: 7, width: 600, height: 400 });
    const whole = values.reduce((sum, value) => sum + value, 0);
    boxes.forEach((box, at) => {
      assert.ok(Math.abs(box.width * box.height - (values[at]! / whole) * 240000) < 0.001);
      assert.ok(box.x >= 5 - 1e-6);
      assert.ok(box.y + box.height <= 407 + 1e-6);
      for (const other of boxes.slice(at + 1)) {
        const overlap = Math.max(0, Math.min(box.x + box.width, other.x + other.width) - Math.max(box.x, other.x)) * Math.max(0, Math.min(box.y + box.height, other.y + other.height) - Math.max(box.y, other.y));
        assert.ok(overlap < 1e-6);
      }
    });
    assert.ok(Math.max(...boxes.map((box) => Math.max(box.width / box.height, box.height / box.width))) < 4);
  });

  it('takes nothing, zeros and a box without area', () => {
    assert.deepEqual(squarify([], { x: 0, y: 0, width: 10, height: 10 }), []);
    assert.equal(squarify([0, 0], { x: 0, y: 0, width: 10, height: 10 }).every((box) => box.width === 0), true);
    assert.equal(squarify([5, 0, 3], { x: 0, y: 0, width: 0, height: 10 }).length, 3);
    for (const box of squarify([5, 0, 0], { x: 0, y: 0, width: 10, height: 10 })) assert.equal(Number.isFinite(box.width + box.height), true);
  });
});
