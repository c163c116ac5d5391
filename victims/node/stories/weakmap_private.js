// Private data in a WeakMap, as compilers write it; its key is the one pool, which lives for ever.
// suspect: PoolData.idle
// place: weakmap_private.js:8
'use strict';
const data = new WeakMap();
class Connection {}
class PoolData {
  constructor() {
    this.idle = [];
  }
}
class Pool {
  constructor() {
    data.set(this, new PoolData());
  }
  release(connection) {
    data.get(this).idle.push(connection);
  }
}
const pool = new Pool();
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) pool.release(new Connection());
  return pool;
});
