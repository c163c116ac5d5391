// A pool of connections that opens up to eight and uses them again.
// suspect: none
'use strict';
class Connection {
  constructor(number) {
    this.number = number;
    this.buffer = Buffer.alloc(1024);
  }
}
const idle = [];
let opened = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) {
    const connection = idle.pop() ?? new Connection(opened++);
    await null;
    idle.push(connection);
  }
});
