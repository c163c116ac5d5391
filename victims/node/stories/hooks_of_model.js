// A hook is added to the model for each request that wants to hear of saves.
// suspect: Model.hooks
// place: hooks_of_model.js:6
'use strict';
class Model {
  constructor() {
    this.hooks = { save: [], remove: [] };
  }
  on(name, hook) {
    this.hooks[name].push(hook);
  }
}
const orders = new Model();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) {
    const request = { number: number++, saved: [] };
    orders.on('save', (order) => request.saved.push(order));
  }
});
