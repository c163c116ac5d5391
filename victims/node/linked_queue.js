// Jobs are appended behind the last one of a linked list, and nobody takes them from the front.
// Owner: JobQueue.first (a chain of Job).
// suspect: JobQueue.first
// place: linked_queue.js:17
// collects: Job at linked_queue.js:9
'use strict';

class Job {
  constructor(number) {
    this.number = number;
    this.payload = `payload ${number}`;
    this.next = null;
  }
}

class JobQueue {
  constructor() {
    this.first = null;
    this.last = null;
  }

  add(job) {
    if (this.last) this.last.next = job;
    else this.first = job;
    this.last = job;
  }
}

const queue = new JobQueue();
let count = 0;
require('./rounds')(() => {
  for (let at = 0; at < 500; at++) queue.add(new Job(count++));
});
