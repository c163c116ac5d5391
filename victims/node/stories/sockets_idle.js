// A proxy keeps the connection of each client that it has ever served, by the client's name.
// suspect: Proxy.upstreams|TcpProxy.upstreams
// place: sockets_idle.js:7
'use strict';
const net = require('net');
class TcpProxy {
  constructor() {
    this.upstreams = new Map();
  }
  connect(client) {
    const socket = new net.Socket();
    this.upstreams.set(client, socket);
    return socket;
  }
}
const proxy = new TcpProxy();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 40; at++) proxy.connect(`client ${number++}`);
});
