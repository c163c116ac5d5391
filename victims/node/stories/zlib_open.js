// Compressors that are made for each answer and never closed.
// suspect: Compressors.inUse
// place: zlib_open.js:6
'use strict';
const zlib = require('zlib');
class Compressors {
  inUse = [];
  get() {
    const deflate = zlib.createDeflate({ level: 1, memLevel: 1, windowBits: 9 });
    this.inUse.push(deflate);
    return deflate;
  }
}
const compressors = new Compressors();
require('../rounds')(async () => {
  for (let at = 0; at < 30; at++) compressors.get();
});
