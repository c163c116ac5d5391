// Forms are compiled when they are first used; there are forty, and soon all are there.
// suspect: none
'use strict';
const forms = new Map();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 200; at++) {
    const key = `form-${number++ % 40}`;
    if (!forms.has(key)) forms.set(key, new Function('v', `return "${key}" + v`));
    forms.get(key)(at);
  }
});
