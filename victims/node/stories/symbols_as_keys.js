// A cache on the request handler itself, under a symbol, so that no one sees it.
// suspect: function handler
// place: symbols_as_keys.js:6
'use strict';
const CACHE = Symbol('cache');
function handler(url) {
  handler[CACHE].set(url, { url, body: `body of ${url}` });
}
handler[CACHE] = new Map();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) handler(`/page/${number++}`);
});
