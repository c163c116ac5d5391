// A state that is replaced with each action and keeps the last ten for undo.
// suspect: none
'use strict';
let state = { past: [], items: [] };
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) {
    const items = [...state.items, { number: number++ }].slice(-50);
    state = { past: [...state.past.slice(-9), state.items], items };
  }
});
