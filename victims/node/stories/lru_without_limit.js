// A cache that forgets what was used least, if only its limit were not Infinity.
// suspect: LruCache.entries
// place: lru_without_limit.js:15
'use strict';
class Entry {
  constructor(key, value, before) {
    this.key = key;
    this.value = value;
    this.before = before;
    this.after = null;
    if (before) before.after = this;
  }
}
class LruCache {
  constructor(limit) {
    this.limit = limit;
    this.entries = new Map();
    this.newest = null;
  }
  set(key, value) {
    this.newest = new Entry(key, value, this.newest);
    this.entries.set(key, this.newest);
    if (this.entries.size > this.limit) this.entries.delete(this.entries.keys().next().value);
  }
}
const cache = new LruCache(Infinity);
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) cache.set(`key ${number++}`, { text: `value ${number}` });
});
