// A check is scheduled for every user who logs in, and stays scheduled when the user has gone.
// Owner: the list of timers of one duration (TimersList); what it collects: Timeout with the callback of watch().
// suspect: TimersList
// collects: Timeout at timers.js:15
'use strict';

class User {
  constructor(number) {
    this.name = `user ${number}`;
    this.visited = [number, number + 1];
  }
}

function watch(user) {
  setInterval(() => user.visited.length > 1000 && console.log(user.name), 3_600_000).unref();
}

let count = 0;
require('./rounds')(() => {
  for (let at = 0; at < 500; at++) watch(new User(count++));
});
