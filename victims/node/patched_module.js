// A function of a module of Node is wrapped anew in each round, as a package does that is evaluated again.
// Owner: fs.ReadStream.
// suspect: fs.ReadStream|function ReadStream
// place: patched_module.js:13
'use strict';

const fs = require('fs');
let count = 0;
require('./rounds')(() => {
  for (let at = 0; at < 200; at++) {
    const number = count++;
    const Old = fs.ReadStream;
    function ReadStream(...values) {
      return number < 0 ? number : Reflect.construct(Old, values, ReadStream);
    }
    ReadStream.prototype = Object.create(Old.prototype);
    Object.defineProperty(fs, 'ReadStream', { value: ReadStream, writable: true, configurable: true });
  }
});
