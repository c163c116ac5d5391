// Failed messages are tried again until they go through; in the end the queue is empty.
// suspect: none
'use strict';
const queue = [];
let failures = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) queue.push({ at, tries: 0, text: `message ${at}` });
  while (queue.length) {
    const message = queue.shift();
    if (++message.tries < 3) {
      failures++;
      queue.push(message);
    }
  }
});
