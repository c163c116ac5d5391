import { describe, expect, it } from 'vitest';
import { HIGHEST_PX, scrollTo, scrollWindow } from './scroll-window';

describe('the rows that are seen', () => {
  it('are those between the edges', () => {
    expect(scrollWindow(1000, 20, 100, 0)).toEqual({ heightPx: 20000, first: 0, end: 5, offsetPx: 0 });
    expect(scrollWindow(1000, 20, 100, 30)).toEqual({ heightPx: 20000, first: 1, end: 7, offsetPx: -10 });
    expect(scrollWindow(0, 20, 100, 0)).toEqual({ heightPx: 0, first: 0, end: 0, offsetPx: 0 });
  });

  it('reach the first and the last row of a very long table', () => {
    const count = 10_000_000;
    expect(scrollWindow(count, 22, 500, 0).first).toBe(0);
    const last = scrollWindow(count, 22, 500, HIGHEST_PX - 500);
    expect(last.heightPx).toBe(HIGHEST_PX);
    expect(last.end).toBe(count);
  });

  it('hold the row that was scrolled to', () => {
    for (const count of [10, 1000, 1_000_000, 40_000_000]) {
      for (const index of [0, 1, Math.floor(count / 3), count - 2, count - 1]) {
        for (const from of [0, 12345]) {
          const seen = scrollWindow(count, 22, 500, scrollTo(index, count, 22, 500, from));
          expect(seen.first).toBeLessThanOrEqual(index);
          expect(seen.end).toBeGreaterThan(index);
        }
      }
    }
  });
});
