// A persistent list of all events; each change makes a new one, and the newest holds all entries.
// suspect: VNode
// place: immutable_list.js:7
'use strict';
const { List } = require('immutable');
class EventLog {
  constructor() {
    this.entries = List();
  }
  add(entry) {
    this.entries = this.entries.push(entry);
  }
}
const log = new EventLog();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) log.add({ number: number++, text: `event ${number}` });
});
