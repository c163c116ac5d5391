// Large documents are parsed, asked and dropped.
// suspect: none
'use strict';
let sum = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 20; at++) {
    const text = JSON.stringify(Array.from({ length: 200 }, (_, number) => ({ number, name: `row ${number}` })));
    sum += JSON.parse(text).reduce((total, row) => total + row.number, 0);
  }
});
