// Each request has a timer that is cleared when it is answered.
// suspect: none
'use strict';
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) {
    const request = { at, url: `/p/${at}` };
    const timer = setTimeout(() => request.url, 1e6);
    await null;
    clearTimeout(timer);
  }
});
