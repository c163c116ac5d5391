// Every upload is in two places, so neither of them alone owns it: what dominates it is the module's context.
// Owner: NameIndex.byName and Timeline.inOrder (either of them at rank 1).
// suspect: NameIndex.byName|Timeline.inOrder
// place: two_holders.js:
// collects: Upload at two_holders.js:9
'use strict';

class Upload {
  constructor(number) {
    this.name = `upload ${number}`;
    this.bytes = Buffer.alloc(512, number & 255);
  }
}

class NameIndex {
  constructor() {
    this.byName = new Map();
  }
}

class Timeline {
  constructor() {
    this.inOrder = [];
  }
}

const index = new NameIndex();
const timeline = new Timeline();
let count = 0;
require('./rounds')(() => {
  for (let at = 0; at < 200; at++) {
    const upload = new Upload(count++);
    index.byName.set(upload.name, upload);
    timeline.inOrder.push(upload);
  }
});
