// Each connection listens to the price feed and never stops to.
// Owner: PriceFeed._events (its listeners of "price").
// suspect: PriceFeed._events.price
// place: listeners.js:
// collects: Function at listeners.js:21
'use strict';

const { EventEmitter } = require('events');

class PriceFeed extends EventEmitter {
  constructor() {
    super();
    this.setMaxListeners(0);
  }
}

class Connection {
  constructor(feed, number) {
    this.number = number;
    this.sent = [];
    feed.on('price', (price) => this.sent.push(price));
  }
}

const feed = new PriceFeed();
let count = 0;
require('./rounds')(() => {
  for (let at = 0; at < 400; at++) new Connection(feed, count++);
  feed.emit('price', 42);
});
