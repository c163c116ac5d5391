// A map used as a cache by a key that never comes again; three snapshots of V8's heap.
// run: node-snapshots
// finding: growth in rendered
const v8 = require('v8');

const rendered = new Map();
function render(url) {
  if (!rendered.has(url)) rendered.set(url, { url, html: ['<html>', url, '</html>'], headers: { length: url.length } });
  return rendered.get(url).html.length;
}

let sum = 0;
function serve(from, count) {
  for (let request = from; request < from + count; request++) sum += render('/page?stamp=' + request) + render('/page?stamp=1');
}

const names = process.argv.slice(2);
let from = 500;
serve(0, 500);
setTimeout(function look() {
  v8.writeHeapSnapshot(names.shift());
  serve(from, 3000);
  from += 3000;
  if (names.length) setTimeout(look, 1);
}, 1);
