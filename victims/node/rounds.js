// What the victims share: a line "work" on standard input does one round, "snapshot FILE" writes a
// snapshot, "internals FILE" one with V8's own objects, as DevTools can.
// Each answers with a line on standard output, so that a test can go in steps.
'use strict';

const readline = require('readline');
const v8 = require('v8');

module.exports = function rounds(work) {
  const lines = readline.createInterface({ input: process.stdin });
  lines.on('line', async (line) => {
    const [command, file] = line.split(' ');
    if (command === 'work') await work();
    if (command === 'snapshot') v8.writeHeapSnapshot(file);
    if (command === 'internals') v8.writeHeapSnapshot(file, { exposeInternals: true });
    if (command === 'exit') process.exit(0);
    console.log('done');
  });
  console.log('ready');
};
