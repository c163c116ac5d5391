// What is known of an object is kept as long as the object.
// suspect: none
'use strict';
const known = new WeakMap();
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) {
    const object = { at };
    known.set(object, { seen: `at ${at}` });
  }
});
