// A bus with one event name for each answer; lost answers leave their listener behind.
// suspect: MessageBus._events|MessageBus
// place: once_never_emitted.js:6
'use strict';
const { EventEmitter } = require('events');
class MessageBus extends EventEmitter {}
const bus = new MessageBus();
let number = 0;
function send(message) {
  bus.once(`answer-${number++}`, (answer) => Object.assign(message, answer));
}
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) send({ at, text: `message ${at}` });
});
