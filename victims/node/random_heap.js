// A heap of a random shape: what a snapshot of it will take at most must be foretold (forecast.rs).
// usage: node random_heap.js SEED MEGABYTES
const [, , seed = '1', megabytes = '20'] = process.argv;

// Mulberry32: the same numbers for the same seed on every version of Node.
let state = Number(seed) >>> 0;
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = state;
  mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
}
const upTo = (most) => 1 + Math.floor(random() * most);
const times = (count, make) => Array.from({ length: count }, (_, at) => make(at));

class Point { constructor(at) { this.x = at; this.y = at + 0.5; } }
class Node { constructor(next) { this.next = next; } }
class Wide { constructor(at) { for (let key = 0; key < 30; key++) this['field' + key] = at + key; } }
let serial = 0;
const word = () => 'text ' + serial++;

// Each makes one thing of some hundreds of bytes to some tens of kilobytes.
const kinds = [
  () => times(upTo(100), (at) => new Point(at)),
  () => times(upTo(100), (at) => ({ at, name: word(), inner: { at } })),
  () => times(upTo(20), (at) => new Wide(at)),
  () => times(upTo(2000), (at) => at),
  () => times(upTo(2000), (at) => at + 0.5),
  () => times(upTo(1000), () => null),
  () => times(upTo(200), word),
  () => word().repeat(upTo(2000)),
  () => times(upTo(50), () => word() + word() + word()),
  () => { const whole = word().repeat(100); return times(upTo(50), (at) => whole.slice(at, at + 40)); },
  () => new Map(times(upTo(200), (at) => [word(), at])),
  () => new Map(times(upTo(200), (at) => [at, new Point(at)])),
  () => new Set(times(upTo(500), (at) => at * 7)),
  () => Object.fromEntries(times(upTo(300), (at) => [word(), at])),
  () => Object.fromEntries(times(upTo(300), (at) => [at * 1000, { at }])),
  () => times(upTo(100), (at) => () => at),
  () => { let last = null; for (let left = upTo(300); left; left--) last = new Node(last); return last; },
  () => new Float64Array(upTo(2000)),
  () => Buffer.alloc(upTo(20000)),
  () => times(upTo(100), (at) => new Date(at)),
  () => times(upTo(100), (at) => BigInt(at) ** 20n),
  () => times(upTo(50), () => new Array(upTo(30))),
  () => times(upTo(50), (at) => Promise.resolve(at)),
  () => times(upTo(50), (at) => Symbol(word())),
  () => times(upTo(30), (at) => [[at], [[at], [[at]]]]),
  () => times(upTo(30), () => new Error(word())),
  () => { const weak = new WeakMap(), keys = times(upTo(100), () => ({})); keys.forEach((key) => weak.set(key, keys)); return { weak, keys }; },
  () => JSON.parse(JSON.stringify(times(upTo(50), (at) => ({ id: at, tags: [word(), word()], on: true, ratio: 0.5 })))),
  () => times(upTo(20), () => /a+b/g),
  () => new Array(upTo(200000)).fill(0),
];
// Some of the kinds, each with a weight of its own; sometimes one alone.
const chosen = times(random() < 0.3 ? 1 : upTo(8), () => [kinds[Math.floor(random() * kinds.length)], random()]);
const whole = chosen.reduce((sum, [, weight]) => sum + weight, 0);
const kept = (globalThis.kept = []);
const until = Number(megabytes) * 1e6;
const used = () => { const { heapUsed, external } = process.memoryUsage(); return heapUsed + external; };
while (used() < until) {
  for (let left = 50; left; left--) {
    let at = random() * whole;
    const [make] = chosen.find(([, weight]) => (at -= weight) < 0) ?? chosen[0];
    kept.push(make());
  }
}
setInterval(() => {}, 1000);
console.log('ready');
