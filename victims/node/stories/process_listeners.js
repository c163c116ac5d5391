// Each job wants to tidy up when the process ends, and stays registered when it is done.
// suspect: process
// place: process_listeners.js:
'use strict';
process.setMaxListeners(0);
let number = 0;
function run() {
  const job = { number: number++, folder: `/tmp/job-${number}`, files: [`a${number}`, `b${number}`] };
  process.on('beforeExit', function tidyUp() {
    job.files.length = 0;
  });
}
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) run();
});
