'use strict';
const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const test = require('node:test');
const { expectNoGrowth, takeSnapshot, HeapGrowthError } = require('heapr');

class Order {
  constructor(number) {
    this.text = `order ${number}`;
    this.lines = new Array(50).fill(number);
  }
}

test('what keeps nothing passes, asynchronous too', async () => {
  const cache = new Map();
  const said = await expectNoGrowth(async () => {
    await null;
    cache.set('last', new Order(1));
  });
  assert.match(said, /nothing is likely to be a leak/);
});

test('what grows fails, with its name and where it was made', async () => {
  const openOrders = [];
  const keep = fs.mkdtempSync(path.join(os.tmpdir(), 'heapr-test-'));
  const failure = await expectNoGrowth(() => openOrders.push(new Order(openOrders.length)), { keep }).then(
    () => assert.fail('it has not failed'),
    (error) => error,
  );
  assert.ok(failure instanceof HeapGrowthError, failure);
  assert.match(failure.message, /openOrders/);
  assert.match(failure.message, /60 more of Order/);
  assert.match(failure.message, /growth\.test\.js/);
  const [place] = fs.readdirSync(keep);
  assert.strictEqual(fs.readdirSync(path.join(keep, place)).length, 3);
  await expectNoGrowth(() => openOrders.push(new Order(openOrders.length)), { allowedBytes: 10 << 20 });
  fs.rmSync(keep, { recursive: true });
});

test('errors of the function and of the options are told as they are', async () => {
  await assert.rejects(expectNoGrowth(() => Promise.reject(new Error('mine'))), /^Error: mine$/);
  await assert.rejects(expectNoGrowth(() => {}, { snapshots: 1 }), /at least 2/);
  assert.throws(() => takeSnapshot(__filename), /exists/);
});
