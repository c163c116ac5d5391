// An object is registered anew in each request, and never dies: the registry keeps a cell for each, and nothing else.
// Owner: the registry.
// suspect: registry (variable in
// place: registry_cells.js
// collects: system / WeakCell
'use strict';

const registry = new FinalizationRegistry(() => {});
const keptForGood = {};
let count = 0;
require('./rounds')(() => {
  for (let at = 0; at < 600; at++) registry.register(keptForGood, count++);
});
