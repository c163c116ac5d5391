// Failures are kept for a report that is written at the end of a process that never ends.
// suspect: Importer.failures
// place: error_list.js:6
'use strict';
class Importer {
  constructor() {
    this.failures = [];
  }
  take(row) {
    try {
      if (row.price === undefined) throw new TypeError(`row ${row.number} has no price`);
    } catch (error) {
      this.failures.push(error);
    }
  }
}
const importer = new Importer();
require('../rounds')(async () => {
  for (let at = 0; at < 200; at++) importer.take({ number: at });
});
