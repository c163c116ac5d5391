// What agents and patchers do: a store hung on a module of Node, which looks like one of the runtime's own.
// Owner: http.stats.byUrl.
// suspect: http.stats.byUrl
// collects: Object
'use strict';

const http = require('http');

http.stats = { byUrl: new Map() };
let count = 0;
require('./rounds')(() => {
  for (let at = 0; at < 600; at++) {
    count++;
    http.stats.byUrl.set(`/u/${count}`, { hits: 1, count });
  }
});
