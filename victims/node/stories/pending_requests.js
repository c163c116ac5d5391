// Requests to a host that never answers: the agent's queue takes in all of them.
// suspect: Agent.requests|agent
// place: pending_requests.js|
'use strict';
const http = require('http');
const net = require('net');
const agent = new http.Agent({ maxSockets: 1, keepAlive: true });
const silent = net.createServer(() => {}).listen(0, '127.0.0.1');
require('../rounds')(async () => {
  for (let at = 0; at < 40; at++) {
    http.get({ agent, host: '127.0.0.1', port: silent.address().port, path: `/${at}` }).on('error', () => {});
  }
});
