// Events are turned into an iterator that nobody iterates.
// suspect: FixedCircularBuffer
// place: async_iterator.js:
'use strict';
const { EventEmitter, on } = require('events');
const feed = new EventEmitter();
const ticks = on(feed, 'tick');
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) feed.emit('tick', { price: number++, name: `stock ${number}` });
  return ticks;
});
