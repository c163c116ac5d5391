// Death: Buffers, which lie outside of V8's heap, meet the group's limit. The file `count` has the number of uploads as
// a binary number of 64 bits.
const fs = require('fs');
const uploads = [];
const count = Buffer.alloc(8);
let file;
function keepUpload() {
  uploads.push(Buffer.alloc(200000, 1));
}
function work() {
  if (!fs.existsSync('go')) return setTimeout(work, 5);
  file ??= fs.openSync('count', 'w', 0o600);
  keepUpload();
  count.writeUInt32LE(uploads.length);
  fs.writeSync(file, count, 0, 8, 0);
  setTimeout(work, 3);
}
work();
