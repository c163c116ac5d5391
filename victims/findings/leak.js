// A list of sessions that is never shortened; three snapshots of V8's heap.
// run: node-snapshots
// finding: growth in SessionStore
const v8 = require('v8');

class SessionStore {
  constructor() { this.sessions = []; }
  open(id) { this.sessions.push({ id, user: 'user ' + id, body: new Array(40).fill(id) }); }
}

const store = new SessionStore();
function serve(count) {
  for (let request = 0; request < count; request++) {
    const words = Array.from({ length: 10 }, (_, word) => 'word ' + word * request);
    store.open(words.length + request);
  }
}

const names = process.argv.slice(2);
serve(500);
setTimeout(function look() {
  v8.writeHeapSnapshot(names.shift());
  serve(3000);
  if (names.length) setTimeout(look, 1);
}, 1);
