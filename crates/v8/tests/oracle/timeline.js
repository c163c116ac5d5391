// Records an allocation timeline and a sampling profile of a small workload:
//
//   node timeline.js FILE.heaptimeline FILE.heapprofile
'use strict';
const { Session } = require('inspector');
const { openSync, writeSync, closeSync, readFileSync, writeFileSync } = require('fs');

const [timeline, profile] = process.argv.slice(2);
const session = new Session();
session.connect();
const post = (method, options) =>
  new Promise((resolve, reject) => session.post(method, options, (error, result) => (error ? reject(error) : resolve(result))));

const kept = [];
function leaf(n) {
  kept.push({ leaf: n, list: new Array(10).fill(n) });
  return `leaf ${n}`;
}
function recursive(depth) {
  kept.push([depth]);
  return depth ? recursive(depth - 1) + leaf(depth) : '';
}
function dropped() {
  let sum = 0;
  for (let i = 0; i < 2000; i++) sum += [i, { i }].length;
  return sum;
}
globalThis.work = () => {
  for (let i = 0; i < 200; i++) recursive(20);
  dropped();
};

(async () => {
  await post('HeapProfiler.enable');
  const file = openSync(timeline, 'w', 0o600);
  session.on('HeapProfiler.addHeapSnapshotChunk', ({ params }) => writeSync(file, params.chunk));
  await post('HeapProfiler.startTrackingHeapObjects', { trackAllocations: true });
  work();
  await post('HeapProfiler.stopTrackingHeapObjects', { reportProgress: false });
  closeSync(file);
  // V8 counts the functions before it writes the file, and functions of this program run while it is written; DevTools
  // relies on the count.
  const text = readFileSync(timeline, 'utf8');
  const functions = JSON.parse(text).trace_function_infos.length / 6;
  writeFileSync(timeline, text.replace(/"trace_function_count":\d+/, `"trace_function_count":${functions}`));
  await post('HeapProfiler.startSampling', { samplingInterval: 256 });
  work();
  const { profile: sampled } = await post('HeapProfiler.stopSampling');
  writeFileSync(profile, JSON.stringify(sampled), { mode: 0o600 });
})();
