// Death: Buffers, which lie outside of V8's heap, meet the group's limit.
const fs = require('fs');
const uploads = [];
function keepUpload() {
  uploads.push(Buffer.alloc(200000, 1));
}
function work() {
  if (!fs.existsSync('go')) return setTimeout(work, 5);
  keepUpload();
  setTimeout(work, 3);
}
work();
