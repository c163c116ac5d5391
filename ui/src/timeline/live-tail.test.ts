import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OpenFile } from '../api/types';
import { isQuiet, timelineEnd } from './live-tail';

const file = (state: string | null, readNs: number, readEvents: number, nowNs: number, events: number) => ({
  trace: { duration_ns: readNs, event_count: readEvents },
  session: state && { state, status: { duration_ns: nowNs, event_count: events } },
}) as unknown as OpenFile;

test('the timeline of a still session runs on to now, and asks for few ends', () => {
  assert.deepEqual(timelineEnd(file(null, 100, 7, 900, 7)), { nowNs: 100, askedNs: 100 });
  assert.deepEqual(timelineEnd(file('ended', 100, 7, 900, 7)), { nowNs: 100, askedNs: 100 });
  const ends = Array.from({ length: 100 }, (_, step) => timelineEnd(file('recording', 100, 7, 200 + step, 7)));
  assert.ok(ends.every(({ nowNs, askedNs }, step) => nowNs === 200 + step && askedNs >= nowNs));
  assert.equal(new Set(ends.map(({ askedNs }) => askedNs)).size, 2);
});

test('what came since the last reading is not drawn as if nothing came', () => {
  assert.deepEqual(timelineEnd(file('recording', 100, 7, 200, 9)), { nowNs: 200, askedNs: 100 });
  assert.ok(!isQuiet(file('recording', 100, 7, 200, 9)) && isQuiet(file('recording', 100, 7, 200, 7)));
  // A full file takes no more events.
  assert.deepEqual(timelineEnd(file('full', 100, 7, 200, 7)), { nowNs: 200, askedNs: 100 });
});
