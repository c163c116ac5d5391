// A log in a string: each line is appended, so that it becomes one long chain of concatenated strings.
// Owner: RequestLog.text.
// suspect: RequestLog.text
// place: growing_string.js:9
// collects: (concatenated string)
'use strict';

class RequestLog {
  constructor() {
    this.text = '';
    this.lines = 0;
  }

  add(line) {
    this.text += `${line}\n`;
    this.lines++;
  }
}

const log = new RequestLog();
require('./rounds')(() => {
  for (let at = 0; at < 1000; at++) log.add(`GET /page/${log.lines} took ${at} ms`);
});
