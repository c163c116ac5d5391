// Each piece of work races against the promise of the shutdown, which never settles.
// suspect: stopping
// place: promise_race.js:
'use strict';
let stop;
const stopping = new Promise((resolve) => (stop = resolve));
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) {
    const work = Promise.resolve({ number: number++, text: `work ${number}` });
    await Promise.race([work, stopping]);
  }
  return stop;
});
