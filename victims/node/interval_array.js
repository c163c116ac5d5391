// Every request starts a timer that adds a large text to a list at the top of the module; no timer is ever stopped.
// Owner: the variable blowingUp of this module.
// suspect: blowingUp (variable in
// place: interval_array.js:
// collects: (concatenated string)
'use strict';

const http = require('http');

const blowingUp = [];

function fill() {
  setInterval(() => {
    blowingUp.push(`${Math.random()} is one of many numbers that somebody keeps here, for no reason. `.repeat(100));
  }, 10);
}

const server = http
  .createServer((request, response) => {
    fill();
    response.end('started');
  })
  .listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    const { spawn } = require('child_process');
    require('./rounds')(
      () =>
        new Promise((resolve) => {
          spawn(process.execPath, [require.resolve('./visitors'), String(port), '10'], {
            stdio: ['ignore', 'ignore', 'inherit'],
          }).on('exit', () => setTimeout(resolve, 600));
        }),
    );
  });
