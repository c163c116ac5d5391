// Two closures share one context: the one that is never called keeps the previous state, which keeps the one before it.
// Owner: the variable current of this module (a chain of contexts hangs from it).
// suspect: current (variable in
// place: closures.js:
// collects: Object
'use strict';

let current = null;

function replace() {
  const previous = current;
  // Never called; because it mentions `previous`, the context of this call holds it.
  function unused() {
    if (previous) console.log('there was one');
  }
  current = {
    text: `state ${Math.random()} `.repeat(20),
    describe() {
      return 'a state';
    },
  };
  return unused;
}

require('./rounds')(() => {
  for (let at = 0; at < 500; at++) replace();
  return current.describe();
});
