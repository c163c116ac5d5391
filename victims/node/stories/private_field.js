// A registry with a private field: nothing is ever unregistered.
// suspect: Registry.#entries
// place: private_field.js:5
'use strict';
class Registry {
  #entries = [];
  register(entry) {
    this.#entries.push(entry);
  }
}
const registry = new Registry();
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) registry.register({ at, name: `plugin ${Math.random()}` });
});
