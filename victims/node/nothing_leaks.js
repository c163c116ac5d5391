// Works hard and keeps nothing: a bounded cache, requests that end, strings that go.
// Owner: none.
// suspect: none
'use strict';

const { EventEmitter } = require('events');

class Request extends EventEmitter {
  constructor(number) {
    super();
    this.number = number;
    this.once('end', () => this.removeAllListeners());
  }
}

const recent = new Map();
let count = 0;
require('./rounds')(async () => {
  for (let at = 0; at < 1000; at++) {
    const request = new Request(count++);
    recent.set(request.number, request);
    if (recent.size > 100) recent.delete(recent.keys().next().value);
    await null;
    request.emit('end');
  }
});
