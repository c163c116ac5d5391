// A slow disk: what is written waits in the stream, and nobody looks at what write() returns.
// suspect: slowDisk|WritableState.buffered|SlowDisk
// place: backpressure.js|
'use strict';
const { Writable } = require('stream');
class SlowDisk extends Writable {
  _write() {}
}
const slowDisk = new SlowDisk({ objectMode: true });
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) slowDisk.write({ line: `line ${number++}` });
});
