// A body is split in two; one half is read, the other's chunks wait for a reader that never comes.
// suspect: Audit.copies
// place: stream_tee.js:6
'use strict';
class Audit {
  constructor() {
    this.copies = [];
  }
  watch(body) {
    const [left, right] = body.tee();
    this.copies.push(right);
    return left;
  }
}
const audit = new Audit();
require('../rounds')(async () => {
  for (let at = 0; at < 40; at++) {
    const body = new ReadableStream({
      start(controller) {
        for (let chunk = 0; chunk < 5; chunk++) controller.enqueue({ chunk, text: `part ${chunk} of ${at}` });
        controller.close();
      },
    });
    for await (const chunk of audit.watch(body)) void chunk;
  }
});
