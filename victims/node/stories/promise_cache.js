// Answers of a service are remembered as promises by their question, for ever.
// suspect: lookups
// place: promise_cache.js:7
'use strict';
const lookups = new Map();
let number = 0;
function lookup(name) {
  if (!lookups.has(name)) {
    lookups.set(name, new Promise((resolve) => setImmediate(() => resolve({ name, address: `10.0.0.${number}` }))));
  }
  return lookups.get(name);
}
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) await lookup(`host-${number++}`);
});
