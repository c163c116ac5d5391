// Builds a heap with all kinds of objects, and writes two snapshots of it:
//
//   node exercise.js A.heapsnapshot B.heapsnapshot [--expose-internals] [--numeric-values]
'use strict';
const v8 = require('v8');
const vm = require('vm');

const [first, second] = process.argv.slice(2);
const options = {
  exposeInternals: process.argv.includes('--expose-internals'),
  exposeNumericValues: process.argv.includes('--numeric-values'),
};

class Point {
  constructor(x, y) {
    this.x = x;
    this.y = y;
  }
}
const other = { Point: class Point { constructor(z) { this.z = z; } } };

const kept = {
  points: [], plain: [], maps: new Map(), sets: new Set(), weak: new WeakMap(), keys: [], strings: [], cons: [],
  closures: [], regexps: [], dates: [], buffers: [], symbols: [], bigints: [], promises: [], errors: [], contexts: [],
};

function make(round, count) {
  for (let i = 0; i < count; i++) {
    const n = round * 100000 + i;
    kept.points.push(new Point(n, n + 0.5), new other.Point(String(n)));
    kept.plain.push({ a: n, b: `b${i % 7}` }, { b: n, a: i }, { a: i, b: 1, c: { deep: n } }, { 'odd, name': i, '"quoted"': 1 });
    if (i % 5 === 0) kept.plain.push({ [`only${i}`]: n }, {}, Object.create(null), { ['x'.repeat(100 + (i % 40))]: 1, second: 2 });
    kept.maps.set(`key ${n}`, { value: n });
    kept.sets.add(Symbol(`symbol ${i % 11}`));
    const key = { key: n };
    kept.keys.push(key);
    if (i % 9 === 0) kept.weak.set(kept.points[kept.points.length - 1], `held weakly ${i}`);
    kept.weak.set(key, [n, { held: `weakly ${i}` }]);
    kept.strings.push(`text ${i % 13}`.repeat(3).slice(0, -1), 'ä€😀'.repeat(2) + n);
    kept.cons.push(`left ${n} `.padEnd(20) + `right ${i % 3}`.padEnd(20));
    kept.closures.push(() => n + i);
    kept.regexps.push(new RegExp(`r${i % 5}`));
    kept.dates.push(new Date(n));
    kept.buffers.push(Buffer.alloc(50 + i), new Float64Array(10), new ArrayBuffer(100));
    kept.bigints.push(BigInt(n) ** 5n);
    kept.promises.push(new Promise((resolve) => (i % 2 ? resolve(n) : undefined)));
    kept.errors.push(new Error(`error ${i % 3}`));
  }
  kept.contexts.push(vm.createContext({ round, list: Array.from({ length: 50 }, (_, i) => ({ i })) }));
  vm.runInContext('globalThis.made = list.map((e) => ({ e, f: () => e }))', kept.contexts[kept.contexts.length - 1]);
}

globalThis.kept = kept;
make(1, 400);
v8.writeHeapSnapshot(first, options);
make(2, 150);
kept.points.splice(0, 300);
for (let i = 0; i < 100; i++) kept.maps.delete(`key ${100000 + i}`);
kept.keys.splice(10, 50);
v8.writeHeapSnapshot(second, options);
