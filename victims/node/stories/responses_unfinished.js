// Answers that are being sent, until they are finished; those of clients that hang up never are.
// suspect: Gateway.open
// place: responses_unfinished.js:7
'use strict';
const { EventEmitter } = require('events');
class Gateway {
  constructor() {
    this.open = new Set();
  }
  answer(response) {
    this.open.add(response);
    response.once('finish', () => this.open.delete(response));
  }
}
const gateway = new Gateway();
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) {
    const response = new EventEmitter();
    gateway.answer(response);
    response.emit('close');
  }
});
