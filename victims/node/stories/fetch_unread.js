// A poller keeps each answer until somebody asks; nobody asks, and the bodies are never read.
// suspect: Poller.answers
// place: fetch_unread.js:6
'use strict';
class Poller {
  constructor() {
    this.answers = [];
  }
  async poll() {
    this.answers.push(new Response('x'.repeat(200) + this.answers.length));
  }
}
const poller = new Poller();
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) await poller.poll();
});
