// Rows are gathered and written in batches; between two batches a part of one is there.
// suspect: none
'use strict';
let batch = [];
let written = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 730; at++) {
    batch.push({ at, text: `row ${at}` });
    if (batch.length === 500) {
      written += batch.length;
      batch = [];
    }
  }
  return written;
});
