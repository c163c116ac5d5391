// Measurements of the last minutes in a window of a fixed length.
// suspect: none
'use strict';
class Window {
  constructor() {
    this.values = [];
  }
  add(value) {
    this.values.push(value);
    if (this.values.length > 300) this.values.shift();
  }
}
const window = new Window();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 600; at++) window.add({ at: number++, value: Math.random() });
});
