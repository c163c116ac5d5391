// A class is extended anew in each round and takes the place of the last one: the newest part of the leak is its root.
// Owner: the variable Current; by places alone, the class that it holds.
// suspect: Current (variable in|function Wrapped
// place: subclass_chain.js
// collects: Wrapped at subclass_chain.js:14
'use strict';

let Current = class Base {};
let count = 0;
require('./rounds')(() => {
  for (let at = 0; at < 200; at++) {
    const number = count++;
    const Old = Current;
    Current = class Wrapped extends Old {
      get number() {
        return number;
      }
    };
  }
});
