// Counts of requests by the whole URL, query string and all.
// suspect: statistics.byUrl|byUrl|statistics
// place: stats_by_url.js:
'use strict';
const statistics = { started: new Date(), byUrl: {} };
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) {
    const url = `/search?q=${number++}`;
    (statistics.byUrl[url] ??= { count: 0, last: null }).count++;
  }
});
