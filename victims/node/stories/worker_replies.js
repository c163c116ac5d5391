// Questions to a worker wait for answers by number; the worker answers to a number of its own.
// suspect: Client.waiting
// place: worker_replies.js:7
'use strict';
let number = 0;
class Client {
  constructor() {
    this.waiting = {};
  }
  ask(question) {
    return new Promise((resolve, reject) => {
      this.waiting[`q${number++}`] = { question, resolve, reject };
    });
  }
}
const client = new Client();
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) client.ask({ text: `how many ${at}?` });
});
