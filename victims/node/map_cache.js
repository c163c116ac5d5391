// A cache without a limit, whose key changes with every request.
// Owner: ResponseCache.entries.
// suspect: ResponseCache.entries
// place: map_cache.js:9
// collects: Object
'use strict';

class ResponseCache {
  constructor() {
    this.entries = new Map();
    this.recent = new Map();
  }

  get(key, make) {
    if (!this.entries.has(key)) this.entries.set(key, make());
    // The bounded one next to it turns over as much and must not be blamed.
    this.recent.set(key, make());
    if (this.recent.size > 200) this.recent.delete(this.recent.keys().next().value);
    return this.entries.get(key);
  }
}

const cache = new ResponseCache();
let count = 0;
require('./rounds')(() => {
  for (let at = 0; at < 600; at++) {
    count++;
    cache.get(`/page?time=${count}`, () => ({ status: 200, body: `<p>${count}</p>`, headers: { length: count } }));
  }
});
