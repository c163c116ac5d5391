// A worker loop was started inside one request's context; every span that it opens is noted in that request's trace.
// Owner: Trace.spans.
// suspect: Trace.spans
// place: async_context.js:13
// collects: Span at async_context.js:20
'use strict';

const { AsyncLocalStorage } = require('async_hooks');

const context = new AsyncLocalStorage();

class Trace {
  constructor(url) {
    this.url = url;
    this.spans = [];
  }
}

class Span {
  constructor(name) {
    this.name = name;
    this.started = process.hrtime();
    context.getStore().spans.push(this);
  }
}

const waiting = [];
context.run(new Trace('/start'), async () => {
  for (;;) {
    const job = await new Promise((resolve) => waiting.push(resolve));
    new Span(job.name);
    await new Promise(setImmediate);
    job.finished();
  }
});

let count = 0;
require('./rounds')(async () => {
  for (let at = 0; at < 300; at++) {
    while (waiting.length === 0) await new Promise(setImmediate);
    await new Promise((finished) => waiting.shift()({ name: `job ${count++}`, finished }));
  }
});
