// Pairs of key and value in a list, searched from its front; the same key is added again and again.
// suspect: HeaderStore.pairs
// place: array_of_pairs.js:6
'use strict';
class HeaderStore {
  constructor() {
    this.pairs = [];
  }
  set(name, value) {
    this.pairs.push([name, value]);
  }
}
const headers = new HeaderStore();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) headers.set('x-request-id', `id-${number++}`);
});
