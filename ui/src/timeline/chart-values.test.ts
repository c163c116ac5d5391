import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TimelineAnswer } from '../api/types';
import { halvesOf, mostWithRss, rateText } from './chart-values';

const answer = (halves: number[] | undefined): TimelineAnswer => ({
  schema: '', note: null, from_ns: 0, to_ns: 2e9, bins: 2, live_bytes: [1 << 20, 3 << 20], live_count: [1, 3], most_bytes: [1 << 20, 3 << 20],
  alloc_bytes: [0, 0], alloc_count: [0, 0], free_count: [0, 0], series: [], resident_bytes: [], rest: [], rss: [], markers: [], snapshots: [], peak: null,
  ...(halves ? { live_bytes_plus_minus: halves } : {}),
});

describe('an axis with resident memory', () => {
  it('leaves the live bytes two fifths of the plot, whatever is resident', () => {
    const resident = (rss_bytes: number[]) => ({ ...answer(undefined), rss: [{ pid: 1, time_ns: [0, 1], rss_bytes }] });
    assert.equal(mostWithRss(100, resident([20, 150])), 150);
    assert.equal(mostWithRss(100, resident([20, 900])), 250);
    assert.equal(mostWithRss(100, resident([])), 100);
    // Without live bytes there is nothing to be squeezed.
    assert.equal(mostWithRss(0, resident([20, 900])), 900);
  });
});

describe('a timeline of samples', () => {
  it('tells a rise with the interval of both ends, and of what was counted none', () => {
    assert.equal(rateText(answer(undefined), 0, 1, 2), '+2.00 MiB, +1.00 MiB/s');
    assert.equal(rateText(answer([3 << 10, 4 << 10]), 0, 1, 2), '+2.00 MiB ± 5.00 KiB, +1.00 MiB ± 2.50 KiB/s');
  });

  it('has the intervals of the curve that is shown', () => {
    assert.deepEqual(halvesOf('bytes', answer([7, 8])), [7, 8]);
    assert.equal(halvesOf('count', answer([7, 8])), undefined);
    assert.equal(halvesOf('bytes', answer(undefined)), undefined);
  });
});
