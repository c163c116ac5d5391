// Counts by the hour and the status: as many as there are of both.
// suspect: none
'use strict';
const counts = {};
require('../rounds')(async () => {
  for (let at = 0; at < 2000; at++) {
    const key = `${at % 24}:${200 + (at % 5)}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
});
