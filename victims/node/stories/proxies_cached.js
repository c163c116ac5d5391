// A layer that watches objects keeps a proxy for each object that was ever read.
// suspect: Observer.proxies
// place: proxies_cached.js:6
'use strict';
class Observer {
  constructor() {
    this.proxies = new Map();
  }
  watch(object) {
    if (!this.proxies.has(object)) this.proxies.set(object, new Proxy(object, {}));
    return this.proxies.get(object);
  }
}
const observer = new Observer();
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) observer.watch({ at, name: `row ${at}` });
});
