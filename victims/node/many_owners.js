// No single object grows much: each of 200 rooms keeps every message ever sent to it.
// Owner: Room.messages (a group of 200 owners).
// suspect: Room.messages
// place: many_owners.js:9
// collects: Message at many_owners.js:16
'use strict';

class Room {
  constructor(name) {
    this.name = name;
    this.messages = [];
  }
}

class Message {
  constructor(text) {
    this.text = text;
    this.at = process.hrtime.bigint();
  }
}

const rooms = new Map();
for (let at = 0; at < 200; at++) rooms.set(`room ${at}`, new Room(`room ${at}`));

let count = 0;
require('./rounds')(() => {
  for (const room of rooms.values()) {
    for (let at = 0; at < 5; at++) room.messages.push(new Message(`message ${count++}`));
  }
});
