// A test tool keeps what is logged, to show it if the test fails; it was left on in production.
// suspect: captured
// place: console_capture.js:
'use strict';
const captured = [];
const log = (...values) => captured.push({ level: 'info', values, at: new Date() });
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) log('request', { url: `/r/${number++}` });
});
