// Files are read and sent through a compressor, one after the other.
// suspect: none
'use strict';
const { Readable, Writable } = require('stream');
const { pipeline } = require('stream/promises');
const zlib = require('zlib');
require('../rounds')(async () => {
  for (let at = 0; at < 15; at++) {
    const sink = new Writable({ write: (chunk, encoding, done) => done() });
    await pipeline(Readable.from([Buffer.alloc(2000, 'x')]), zlib.createGzip(), sink);
  }
});
