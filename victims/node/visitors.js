// Asks `http://127.0.0.1:PORT/` COUNT times, one after another, without cookies.
'use strict';

const http = require('http');

const [port, count] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });

function ask() {
  return new Promise((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port, agent }, (response) => response.resume().on('end', resolve))
      .on('error', reject);
  });
}

(async () => {
  for (let at = 0; at < count; at++) await ask();
  agent.destroy();
})();
