// The same text parsed anew for each row; one snapshot of V8's heap.
// run: node-snapshot
// finding: duplicates in
const v8 = require('v8');

const rows = [];
for (let row = 0; row < 20000; row++) {
  rows.push({ row, state: JSON.parse('"a state that every row has a copy of, because it is parsed anew ' + (row % 3) + '"') });
}
globalThis.rows = rows;
v8.writeHeapSnapshot(process.argv[2]);
