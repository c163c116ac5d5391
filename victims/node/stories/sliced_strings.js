// Only the first twenty letters of each document are kept, and with them the whole document.
// suspect: Index.titles
// place: sliced_strings.js:7
// collects: (sliced string)
'use strict';
class Index {
  constructor() {
    this.titles = [];
  }
  add(text) {
    this.titles.push(text.slice(1, 21));
  }
}
const index = new Index();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 100; at++) {
    const text = Buffer.alloc(4000, `document ${number++} `).toString('latin1');
    index.add(text);
  }
});
