// The last hundred lines, in a ring.
// suspect: none
'use strict';
const lines = new Array(100);
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) lines[number++ % 100] = { number, text: `line ${number}` };
});
