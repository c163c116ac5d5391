// A tracer notes each asynchronous resource when it begins and forgets to drop it.
// suspect: resources
// place: async_hooks_map.js:
'use strict';
const { createHook } = require('async_hooks');
const resources = new Map();
createHook({
  init(id, type) {
    if (type === 'Immediate') resources.set(id, { type, at: process.hrtime() });
  },
}).enable();
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) await new Promise((resolve) => setImmediate(resolve));
});
