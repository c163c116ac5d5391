// Run by Vitest.
import { expect, test } from 'vitest';
import { expectNoGrowth } from 'heapr';

class Order {
  constructor(number) {
    this.text = `order ${number}`;
    this.lines = new Array(50).fill(number);
  }
}

test('what keeps nothing passes', async () => {
  const cache = new Map();
  await expectNoGrowth(() => cache.set('last', new Order(1)));
}, 300000);

test('what grows fails, with its name and where it was made', async () => {
  const openOrders = [];
  const failure = expectNoGrowth(() => openOrders.push(new Order(openOrders.length)));
  await expect(failure).rejects.toThrow(/openOrders[^]*60 more of Order/);
}, 300000);
