import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { amountStep, clampSeen, timeStep, timeTicks } from './scale';

describe('axes', () => {
  it('have round steps that are far enough apart', () => {
    for (const span of [1000, 12_345, 7e6, 4.7e9, 3.6e12]) {
      const step = timeStep(span, 1000, 90);
      assert.ok((step / span) * 1000 >= 90);
      assert.ok((step / span) * 1000 <= 230);
      assert.ok(timeTicks(0, span, step).length > 3);
    }
    assert.deepEqual(timeTicks(15, 35, 10), [20, 30]);
  });

  it('have steps of bytes that are round in KiB and MiB', () => {
    assert.equal(amountStep(118 * 1024 * 1024, 4, true), 32 * 1024 * 1024);
    assert.equal(amountStep(3000, 3, true), 1024);
    assert.equal(amountStep(0, 4, true), 1);
    assert.equal(amountStep(900, 4, false), 500);
  });

  it('show no less than a microsecond and nothing outside the trace', () => {
    assert.deepEqual(clampSeen(500, 501, 1e9), [500, 1500]);
    assert.deepEqual(clampSeen(-50, 1e6, 1e9), [0, 1_000_050]);
    assert.deepEqual(clampSeen(9e8, 2e9, 1e9), [0, 1e9]);
    assert.deepEqual(clampSeen(9e8, 1.1e9, 1e9), [8e8, 1e9]);
  });
});
