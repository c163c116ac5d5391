// Each request's context has the one before as its parent, so that none can go.
// suspect: latest|Context.parent
// place: linked_requests.js:
'use strict';
class Context {
  constructor(parent, url) {
    this.parent = parent;
    this.url = url;
  }
}
let latest = null;
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) latest = new Context(latest, `/page/${number++}`);
});
