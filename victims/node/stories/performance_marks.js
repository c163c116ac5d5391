// Each request is marked for a measurement, and the marks are never cleared.
// suspect: markEntryBuffer
// collects: PerformanceMark
'use strict';
const { performance } = require('perf_hooks');
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) performance.mark(`request-${number++}`, { detail: { at } });
});
