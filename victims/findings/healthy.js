// A map that holds the last hundred requests; three snapshots of V8's heap.
// run: node-snapshots
// finding: none
const v8 = require('v8');

const recent = new Map();
function serve(from, count) {
  for (let request = from; request < from + count; request++) {
    recent.set(request, { request, body: new Array(20).fill(request) });
    if (recent.size > 100) recent.delete(recent.keys().next().value);
  }
}

const names = process.argv.slice(2);
let from = 5000;
serve(0, 5000);
setTimeout(function look() {
  v8.writeHeapSnapshot(names.shift());
  serve(from, 3000);
  from += 3000;
  if (names.length) setTimeout(look, 1);
}, 1);
