// Listeners are added for each request and removed at its end.
// suspect: none
'use strict';
const { EventEmitter } = require('events');
const bus = new EventEmitter();
bus.setMaxListeners(0);
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) {
    const request = { at, heard: [] };
    const listener = (what) => request.heard.push(what);
    bus.on('tick', listener);
    bus.emit('tick', at);
    bus.off('tick', listener);
  }
});
