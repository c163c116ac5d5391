// A ring of the last log lines: its head moves, but what lies before it is never cut off.
// suspect: LogRing.lines
// place: ring_that_grows.js:7
'use strict';
let number = 0;
class LogRing {
  constructor(size) {
    this.size = size;
    this.head = 0;
    this.lines = [];
  }
  add(text) {
    this.lines.push({ text, at: number++ });
    if (this.lines.length - this.head > this.size) this.head++;
  }
}
const ring = new LogRing(100);
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) ring.add(`line ${number}`);
});
