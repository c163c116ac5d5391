import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HIGHEST_PX, scrolledHeight, scrollTo, scrollWindow } from './scroll-window';

describe('the rows that are seen', () => {
  it('are those between the edges', () => {
    assert.deepEqual(scrollWindow(1000, 20, 100, 0), { first: 0, end: 5, offsetPx: 0 });
    assert.deepEqual(scrollWindow(1000, 20, 100, 30), { first: 1, end: 7, offsetPx: -10 });
    assert.deepEqual(scrollWindow(0, 20, 100, 0), { first: 0, end: 0, offsetPx: 0 });
  });

  it('reach the first and the last row of a very long table', () => {
    const count = 10_000_000;
    assert.equal(scrollWindow(count, 22, 500, 0).first, 0);
    const last = scrollWindow(count, 22, 500, HIGHEST_PX - 500);
    assert.equal(scrolledHeight(count, 22), HIGHEST_PX);
    assert.equal(last.end, count);
  });

  it('hold the row that was scrolled to', () => {
    for (const count of [10, 1000, 1_000_000, 40_000_000]) {
      for (const index of [0, 1, Math.floor(count / 3), count - 2, count - 1]) {
        for (const from of [0, 12345]) {
          const seen = scrollWindow(count, 22, 500, scrollTo(index, count, 22, 500, from));
          assert.ok(seen.first <= index);
          assert.ok(seen.end > index);
        }
      }
    }
  });
});
