// Clients that went away stay in the server's set: "close" is not listened for.
// suspect: ChatServer.clients
// place: clients_set.js:7
'use strict';
const { EventEmitter } = require('events');
class ChatServer extends EventEmitter {
  constructor() {
    super();
    this.clients = new Set();
  }
  accept(name) {
    const client = new EventEmitter();
    client.name = name;
    this.clients.add(client);
    client.emit('close');
  }
}
const server = new ChatServer();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) server.accept(`client ${number++}`);
});
