// Fifty users come again and again; each has one session that is written over.
// suspect: none
'use strict';
class Sessions {
  constructor() {
    this.byUser = new Map();
  }
  touch(user, page) {
    this.byUser.set(user, { user, page, at: new Date() });
  }
}
const sessions = new Sessions();
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 500; at++) sessions.touch(`user ${number++ % 50}`, `/page/${at}`);
});
