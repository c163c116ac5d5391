// Each job races against a promise for the shutdown, which never settles: it collects the reactions of every race.
// Owner: the Promise in the variable shutdown of this module.
// suspect: shutdown (variable in
// place: pending_promise.js:
// collects: system / PromiseReaction
'use strict';

const shutdown = new Promise(() => {});

async function job(number) {
  const payload = { number, rows: [number, `row ${number}`] };
  await Promise.race([shutdown, Promise.resolve(payload)]);
}

let count = 0;
require('./rounds')(async () => {
  for (let at = 0; at < 500; at++) await job(count++);
});
