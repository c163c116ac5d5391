// A consumer was started inside of a request: its store lives on and takes in all lines of the log.
// suspect: RequestStore.lines
// place: als_enter_with.js:8
'use strict';
const { AsyncLocalStorage } = require('async_hooks');
const storage = new AsyncLocalStorage();
class RequestStore {
  constructor(url) {
    this.url = url;
    this.lines = [];
  }
}
const queue = [];
let wake;
async function consume() {
  storage.enterWith(new RequestStore('/first'));
  for (;;) {
    while (queue.length) storage.getStore().lines.push({ job: queue.shift(), text: `done ${Math.random()}` });
    await new Promise((resolve) => (wake = resolve));
  }
}
consume();
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) queue.push({ number: at });
  wake();
  await new Promise(setImmediate);
});
