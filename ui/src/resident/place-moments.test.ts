import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearestMoment, pinSentence } from './place-moments';

test('a time has the last moment until it', () => {
  const moments = [{ time_ns: 10 }, { time_ns: 20 }, { time_ns: 30 }];
  assert.deepEqual([5, 10, 19, 20, 99].map((time) => nearestMoment(moments, time)), [0, 0, 0, 1, 2]);
});

test('free memory is told with the blocks that hold it', () => {
  const pin = { owner: 1, free_bytes: 8 << 20, block_count: 14, block_bytes: 1229 };
  assert.equal(pinSentence(pin, ['a', 'shop::load_report']), '8.00 MiB of free memory are held by 14 blocks of shop::load_report (1.20 KiB).');
});
