// An undo history in the store: each state keeps all states before it.
// suspect: History.past
// place: redux_history.js:7
'use strict';
const { legacy_createStore: createStore } = require('redux');
class History {
  constructor(past, present) {
    this.past = past;
    this.present = present;
  }
}
function reducer(state = new History([], { items: 0 }), action) {
  if (action.type !== 'add') return state;
  return new History([...state.past, state.present], { items: state.present.items + 1, note: action.note });
}
const store = createStore(reducer);
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) store.dispatch({ type: 'add', note: `note ${at} ${store.getState().past.length}` });
});
