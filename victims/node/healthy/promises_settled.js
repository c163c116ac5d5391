// Thousands of promises, each awaited.
// suspect: none
'use strict';
require('../rounds')(async () => {
  for (let at = 0; at < 20; at++) {
    await Promise.all(Array.from({ length: 50 }, (_, number) => new Promise((resolve) => setImmediate(resolve, number))));
  }
});
