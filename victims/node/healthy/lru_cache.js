// A cache with a limit that is kept.
// suspect: none
'use strict';
const cache = new Map();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 800; at++) {
    cache.set(number++, { text: `value ${number}` });
    if (cache.size > 200) cache.delete(cache.keys().next().value);
  }
});
