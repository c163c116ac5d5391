// A schema is made for each request, and the validator remembers all schemas it compiled.
// suspect: ValueScope|Ajv
// place: ajv_schemas.js:
'use strict';
const Ajv = require('ajv').default;
const ajv = new Ajv();
require('../rounds')(async () => {
  for (let at = 0; at < 20; at++) {
    ajv.compile({ type: 'object', properties: { name: { type: 'string', maxLength: at + 1 } } })({ name: 'x' });
  }
});
