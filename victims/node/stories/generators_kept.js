// Walks over a tree that were begun and not finished stay in the list of what runs.
// suspect: Walker.running
// place: generators_kept.js:6
'use strict';
class Walker {
  constructor() {
    this.running = [];
  }
  *steps(node) {
    yield node;
    for (const child of node.children) yield* this.steps(child);
  }
  begin(node) {
    const walk = this.steps(node);
    walk.next();
    this.running.push(walk);
  }
}
const walker = new Walker();
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) walker.begin({ at, children: [{ at: -at, children: [] }] });
});
