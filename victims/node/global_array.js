// A history that somebody put on the global object for debugging.
// Owner: the global variable requestHistory.
// suspect: globalThis.requestHistory
// collects: RequestRecord at global_array.js:10
'use strict';

globalThis.requestHistory = [];

class RequestRecord {
  constructor(number) {
    this.url = `/orders/${number}`;
    this.headers = { accept: '*/*', 'x-request': String(number) };
  }
}

require('./rounds')(() => {
  for (let at = 0; at < 500; at++) globalThis.requestHistory.push(new RequestRecord(globalThis.requestHistory.length));
});
