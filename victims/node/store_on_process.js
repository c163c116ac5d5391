// A store hung on `process`, so that all copies of a package find it; its class is the program's.
// Owner: Namespace.contexts, which process.namespaces has.
// suspect: Namespace.contexts
// place: store_on_process.js:9
// collects: Object
'use strict';

class Namespace {
  constructor() {
    this.contexts = new Map();
  }
}

process.namespaces = { app: new Namespace() };
let count = 0;
require('./rounds')(() => {
  for (let at = 0; at < 600; at++) {
    count++;
    process.namespaces.app.contexts.set(count, { id: `context ${count}`, count });
  }
});
