// Each request adds a transport of its own to the one logger of the service, and none is removed.
// suspect: ReadableState.pipes of logger
// place: winston_children.js:
'use strict';
const winston = require('winston');
const { Writable } = require('stream');
const logger = winston.createLogger({ transports: [] });
require('events').setMaxListeners(0);
logger.setMaxListeners(0);
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 60; at++) {
    const stream = new Writable({ write: (chunk, encoding, done) => done() });
    const transport = new winston.transports.Stream({ stream });
    transport.request = `request ${number++}`;
    logger.add(transport);
  }
});
