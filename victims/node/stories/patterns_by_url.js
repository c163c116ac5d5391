// A router makes a pattern of each URL that it meets, ids and all.
// suspect: Router.patterns
// place: patterns_by_url.js:7
// collects: RegExp
'use strict';
class Router {
  constructor() {
    this.patterns = {};
  }
  match(url) {
    this.patterns[url] ??= new RegExp(`^${url}$`);
    return this.patterns[url].test(url);
  }
}
const router = new Router();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) router.match(`/users/${number++}/orders`);
});
