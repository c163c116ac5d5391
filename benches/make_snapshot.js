// Writes a heap snapshot of many small objects, strings, Maps and closures, for benchmarks.
//
//   node --max-old-space-size=8000 benches/make_snapshot.js FILE [UNITS] [--expose-internals] [--grow UNITS]
//
// 300 units give about 140 MB, 2150 about 1 GB. `--grow UNITS` writes a second file, FILE.2, after that many units more
// were made and a tenth of the first ones was dropped: the pair for `heapr snapshot diff`.
'use strict';
const v8 = require('node:v8');

const words = process.argv.slice(2);
const option = (name) => {
  const at = words.indexOf(name);
  return at < 0 ? undefined : words.splice(at, 2)[1];
};
const grow = Number(option('--grow') ?? 0);
const internals = words.includes('--expose-internals');
const [file, units = '300'] = words.filter((word) => !word.startsWith('--'));

class Customer {
  constructor(number) {
    this.name = `customer ${number}`;
    this.address = { street: `street ${number % 977}`, town: `town ${number % 89}`, code: number };
    this.orders = [];
    this.tags = new Set([`tag ${number % 31}`, number % 7]);
    this.notify = (text) => `${this.name}: ${text}`;
  }
}

class Order {
  constructor(customer, number) {
    this.customer = customer;
    this.number = number;
    this.placed = number * 1.5 + 0.25;
    this.lines = [{ item: `item ${number % 5003}`, count: number % 9 }, { item: `item ${number % 4999}`, count: 1 }];
  }
}

function unit(number) {
  const index = new Map();
  const customers = [];
  for (let i = 0; i < 100; i++) {
    const customer = new Customer(number * 100 + i);
    for (let j = 0; j < 6; j++) customer.orders.push(new Order(customer, number * 1000 + i * 6 + j));
    index.set(customer.name, customer);
    customers.push(customer);
  }
  return { index, customers, made: new Date(number), text: 'x'.repeat(200) + number };
}

const all = [];
globalThis.all = all;
const add = (count) => {
  for (let i = 0; i < count; i++) all.push(unit(all.length));
};
const write = (name) => v8.writeHeapSnapshot(name, { exposeInternals: internals });

add(Number(units));
write(file);
if (grow > 0) {
  all.splice(0, Math.floor(all.length / 10));
  add(grow);
  write(`${file}.2`);
}
