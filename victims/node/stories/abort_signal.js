// Each request listens for the shutdown of the whole server and never stops listening.
// suspect: shutdown
// place: abort_signal.js:9
'use strict';
const { constants } = require('os');
const shutdown = new AbortController();
require('events').setMaxListeners(0, shutdown.signal);
let served = 0;
function serve(url) {
  const request = { url, headers: { host: `h${served}`, accept: String(constants.signals.SIGTERM) } };
  shutdown.signal.addEventListener('abort', () => request.headers.host);
  served++;
}
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) serve(`/page/${at}`);
});
