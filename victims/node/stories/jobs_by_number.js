// Jobs by their number, deleted under another number than they were added.
// suspect: JobTable.jobs
// place: jobs_by_number.js:6
'use strict';
class JobTable {
  constructor() {
    this.jobs = {};
  }
  run(number) {
    this.jobs[number * 7] = { number, state: 'done', log: [`job ${number}`] };
    delete this.jobs[number];
  }
}
const table = new JobTable();
let number = 1_000_000;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) table.run(number++);
});
