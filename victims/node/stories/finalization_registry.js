// What is registered to be told of its end holds itself by the value that is handed over then.
// suspect: registry
// place: finalization_registry.js:
'use strict';
class Texture {
  constructor(number) {
    this.number = number;
    this.label = `texture ${number}`;
  }
}
const registry = new FinalizationRegistry((texture) => texture.label);
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) {
    const texture = new Texture(number++);
    registry.register(texture, { texture, freed: false });
  }
});
