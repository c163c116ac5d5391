// A module's function makes its state on first use and keeps it in the function's closure.
// suspect: state.items|state|items
// place: singleton_by_call.js:
'use strict';
const getState = (() => {
  let state;
  return () => (state ??= { items: [], started: new Date() });
})();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) getState().items.push({ number: number++, text: `item ${number}` });
});
