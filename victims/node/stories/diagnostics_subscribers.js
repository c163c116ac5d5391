// Each request subscribes to a channel of diagnostics.
// suspect: Channel._subscribers|ActiveChannel._subscribers|queries
'use strict';
const { channel } = require('diagnostics_channel');
const queries = channel('db:query');
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) {
    const request = { number: number++, queries: [] };
    queries.subscribe((message) => request.queries.push(message));
  }
});
