// A web shop that keeps its sessions in memory: each visitor without a cookie gets a new one, none is ever removed.
// Owner: MemoryStore.sessions, made in express-session/session/memory.js.
// suspect: MemoryStore.sessions
// place: express-session/session/memory.js:
// collects: (concatenated string)|(string)
'use strict';

const http = require('http');
const express = require('express');
const session = require('express-session');

const app = express();
app.use(session({ secret: 'for tests', resave: false, saveUninitialized: true }));
app.get('/', (request, response) => {
  request.session.visits = (request.session.visits || 0) + 1;
  response.send(`visit ${request.session.visits}`);
});

// The visitors come from another process, so that their side leaves nothing in this heap.
const server = http.createServer(app).listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const { spawn } = require('child_process');
  require('./rounds')(
    () =>
      new Promise((resolve) => {
        spawn(process.execPath, [require.resolve('./visitors'), String(port), '400'], {
          stdio: ['ignore', 'ignore', 'inherit'],
        }).on('exit', resolve);
      }),
  );
});
