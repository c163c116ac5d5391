// Each new thing's context holds the one before, by a function that is never called.
// suspect: theThing
// place: closure_chain.js:
'use strict';
let theThing = null;
function replaceThing() {
  const originalThing = theThing;
  const unused = function () {
    if (originalThing) console.log('hi');
  };
  theThing = {
    longText: Buffer.alloc(500, 'x').toString() + Math.random(),
    someMethod() {
      return unused.name;
    },
  };
}
require('../rounds')(async () => {
  for (let at = 0; at < 200; at++) replaceThing();
});
