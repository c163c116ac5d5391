// Signals that are made of one that lives long: the made ones are kept by a store of their users.
// suspect: Downloads.running
// place: abort_signal_any.js:7
'use strict';
const server = new AbortController();
class Downloads {
  constructor() {
    this.running = new Set();
  }
  start(url) {
    const own = new AbortController();
    this.running.add({ url, signal: AbortSignal.any ? AbortSignal.any([own.signal, server.signal]) : own.signal });
  }
}
const downloads = new Downloads();
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) downloads.start(`/file/${at}`);
});
