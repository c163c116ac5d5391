// Jobs are kept as bound functions after they ran.
// suspect: Scheduler.done
// place: bound_functions.js:6
'use strict';
class Scheduler {
  constructor() {
    this.done = [];
  }
  run(job) {
    const step = job.run.bind(job);
    step();
    this.done.push(step);
  }
}
class Job {
  constructor(number) {
    this.number = number;
  }
  run() {
    return this.number + 1;
  }
}
const scheduler = new Scheduler();
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) scheduler.run(new Job(at));
});
