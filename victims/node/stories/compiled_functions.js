// Filters of users are compiled, and the compiled ones are kept by their text.
// suspect: compiled
// place: compiled_functions.js:
'use strict';
const compiled = new Map();
const vm = require('vm');
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 150; at++) {
    const text = `(row) => row.price > ${number++}`;
    compiled.set(text, vm.runInThisContext(text));
  }
});
