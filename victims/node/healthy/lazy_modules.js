// Modules of Node that are loaded when they are first needed.
// suspect: none
'use strict';
const names = ['zlib', 'dns', 'tls', 'https', 'http2', 'readline', 'repl', 'dgram', 'cluster', 'inspector'];
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 2 && number < names.length; at++) require(names[number++]);
});
