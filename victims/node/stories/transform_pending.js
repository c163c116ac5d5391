// Uploads that were paused and never resumed: their chunks lie in the streams that wait.
// suspect: UploadDesk.paused
// place: transform_pending.js:7
'use strict';
const { PassThrough } = require('stream');
class UploadDesk {
  constructor() {
    this.paused = [];
  }
  begin() {
    const upload = new PassThrough();
    upload.write(Buffer.alloc(300, 'u'));
    this.paused.push(upload);
  }
}
const desk = new UploadDesk();
require('../rounds')(async () => {
  for (let at = 0; at < 40; at++) desk.begin();
});
