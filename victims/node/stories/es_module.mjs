// A module's own variable that takes in every address that was seen.
// suspect: seenAddresses
// place: es_module.mjs:
import rounds from '../rounds.js';
let number = 0;
export const seenAddresses = new Set();
class Address {
  constructor(text) {
    this.text = text;
  }
}
rounds(async () => {
  for (let at = 0; at < 500; at++) seenAddresses.add(new Address(`10.1.${number++}`));
});
