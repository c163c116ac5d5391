// A function of two arguments is memoized by the first one, which is new each time.
// suspect: Hash.__data__ of render
// place: lodash_memoize.js:
'use strict';
const render = require('lodash').memoize((template, values) => ({ text: template + values.name }));
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) render(`hello ${number++}`, { name: 'you' });
});
