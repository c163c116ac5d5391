// The leak is in a worker's heap: the identifiers that it has seen. The main thread's heap does not grow.
// Owner (in the worker's snapshots): Deduplicator.seen.
// suspect: Deduplicator.seen
// place: worker_set.js:22
// collects: (string)
'use strict';

const { Worker, isMainThread, parentPort } = require('worker_threads');

if (isMainThread) {
  const worker = new Worker(__filename);
  const readline = require('readline');
  readline.createInterface({ input: process.stdin }).on('line', (line) => {
    if (line === 'exit') process.exit(0);
    worker.postMessage(line);
  });
  worker.on('message', (message) => console.log(message));
} else {
  const v8 = require('v8');

  class Deduplicator {
    constructor() {
      this.seen = new Set();
    }

    isNew(message) {
      const key = `${message.source}/${message.number}`;
      if (this.seen.has(key)) return false;
      this.seen.add(key);
      return true;
    }
  }

  const deduplicator = new Deduplicator();
  let count = 0;
  parentPort.on('message', (line) => {
    const [command, file] = line.split(' ');
    if (command === 'work') {
      for (let at = 0; at < 1000; at++) deduplicator.isNew({ source: 'queue', number: count++ });
    }
    if (command === 'snapshot') v8.writeHeapSnapshot(file);
    parentPort.postMessage('done');
  });
  parentPort.postMessage('ready');
}
