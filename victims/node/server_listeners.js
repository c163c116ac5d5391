// Each proxy listens to the server and never stops: the server is the runtime's, and no function of the runtime holds it.
// Owner: the listeners of the server.
// suspect: Server._events.close of server (variable in 
// place: server_listeners.js:10
// collects: Proxy|Function|Object at server_listeners.js:13
'use strict';

const http = require('http');

const server = http.createServer((request, response) => response.end()).listen(0, '127.0.0.1');
class Proxy {
  constructor(number) {
    server.on('close', () => this.stop());
    this.rows = [number];
  }

  stop() {
    this.rows = null;
  }
}

server.setMaxListeners(0);
let count = 0;
require('./rounds')(() => {
  for (let at = 0; at < 600; at++) new Proxy(count++);
});
