// Every view subscribes to the one stream of prices, and none unsubscribes.
// suspect: Subject.observers|prices|Subject
// place: rxjs|rxjs_subscribers.js
'use strict';
const { Subject } = require('rxjs');
const prices = new Subject();
class View {
  constructor(number) {
    this.number = number;
    this.shown = [];
    prices.subscribe((price) => this.shown.push(price));
  }
}
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 200; at++) new View(number++);
});
