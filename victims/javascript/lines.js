// Allocates Buffers whose sizes stand for the allocating function and line, as the program itself
// finds them (`Error().stack`). The functions are called until they are optimized and inlined. At
// the end FILE (the first argument) gets the meaning of each size, and the number of its
// blocks.
//
// With VICTIM_WAITS=1 it says so and waits for a line first, during which it is attached to.
'use strict';

const crypto = require('node:crypto');
const fs = require('node:fs');
const vm = require('node:vm');
const { Worker, isMainThread, workerData } = require('node:worker_threads');

const FIRST_BYTES = isMainThread ? 20000 : 60000;
const told = new Map();
const kept = [];

/** Returns the size for a location, which is found at the first call. */
function size(number, name, file = __filename) {
  const bytes = FIRST_BYTES + number * 64;
  const known = told.get(bytes);
  if (known !== undefined) {
    known.blocks += 1;
    return bytes;
  }
  const frames = new Error().stack.split('\n');
  const line = Number(/:(\d+):\d+\)?$/.exec(frames[2])[1]);
  told.set(bytes, { bytes, function: name, file, line, blocks: 1 });
  return bytes;
}

function keep(buffer) { kept[kept.length % 16] = buffer; if (kept.length > 16) kept.length = 0; }

function plain() {
  const bytes = 0;
  keep(Buffer.allocUnsafeSlow(size(0, 'plain') + bytes));
}
const arrow = () => {
  keep(Buffer.allocUnsafeSlow(size(1, 'arrow')));
};
class Maker {
  constructor() { keep(Buffer.allocUnsafeSlow(size(2, 'Maker'))); }
  method() {
    keep(
      Buffer.allocUnsafeSlow(size(3, 'method')));
  }
  get value() { keep(Buffer.allocUnsafeSlow(size(4, 'get value'))); return 1; }
  static make() {
    if (kept.length < 0) throw new Error();
    keep(Buffer.allocUnsafeSlow(size(5, 'make')));
    return new Maker();
  }
}
function innermost(depth) {
  if (depth > 0) return innermost(depth - 1) + 1;
  keep(Buffer.allocUnsafeSlow(size(6, 'innermost'))); return 0;
}
function twice(what) { what(); what(); }
function closure() { twice(function inClosure() { keep(Buffer.allocUnsafeSlow(size(7, 'inClosure'))); }); }
function* generator() {
  keep(Buffer.allocUnsafeSlow(size(8, 'generator')));
  yield 1;
  keep(Buffer.allocUnsafeSlow(size(9, 'generator')));
}
async function later() {
  keep(Buffer.allocUnsafeSlow(size(10, 'later')));
  await null;
  keep(Buffer.allocUnsafeSlow(size(11, 'later')));
}
const evaluated = eval('(function evaluated() {\n\n  keep(Buffer.allocUnsafeSlow(size(12, "evaluated", "(evaluated)")));\n})');
const script = new vm.Script('\n(function scripted(keep, size) {\n  keep(Buffer.allocUnsafeSlow(size(13, "scripted", "given.js")));\n})',
  { filename: 'given.js', lineOffset: 100 }).runInThisContext();
const several = [() => { keep(Buffer.allocUnsafeSlow(size(14, 'several'))); }];
const holder = {};
holder.assigned = function () { keep(Buffer.allocUnsafeSlow(size(15, 'holder.assigned'))); };
function random() {
  crypto.randomBytes(size(16, 'random'));
}
function mapped() {
  [1, 2].forEach((value) => {
    keep(Buffer.allocUnsafeSlow(size(17, '(anonymous)') + 0 * value)); });
}
function caught() {
  try {
    JSON.parse('{');
  } catch {
    keep(Buffer.allocUnsafeSlow(size(18, 'caught')));
  } finally { keep(Buffer.allocUnsafeSlow(size(19, 'caught'))); }
}
const Ünïcode = function ключ() { keep(Buffer.allocUnsafeSlow(size(20, 'ключ'))); };

async function work() {
  const maker = new Maker();
  const rounds = Number(process.env.VICTIM_ROUNDS || 3000);
  for (let round = 0; round < rounds; round++) {
    plain(); arrow(); maker.method(); maker.value; Maker.make(); innermost(round % 50); closure();
    for (const _ of generator()); evaluated(); script(keep, size); several[0](); holder.assigned();
    random(); mapped(); Ünïcode();
    if (round % 64 === 0) { await later(); caught(); }
  }
}

function tellAll() {
  const suffix = isMainThread ? '' : '.child';
  const name = isMainThread ? process.argv[2] : workerData;
  fs.writeFileSync(name + suffix, [...told.values()].map((entry) => JSON.stringify(entry) + '\n').join(''));
}

async function main() {
  if (isMainThread && process.env.VICTIM_WAITS) {
    process.stdout.write('waits\n');
    fs.readSync(0, Buffer.alloc(64));
  }
  const worker = isMainThread ? new Worker(__filename, { workerData: process.argv[2] }) : null;
  const ended = worker && new Promise((resolve) => worker.on('exit', resolve));
  await work();
  tellAll();
  await ended;
}
main();
