// The last frames of a camera are kept to make a film of them; which ones are the last nobody says.
// suspect: Camera.frames
// place: buffer_frames.js:7
// collects: Buffer
'use strict';
class Camera {
  constructor() {
    this.frames = [];
  }
  capture() {
    this.frames.push(Buffer.alloc(8192, this.frames.length));
  }
}
const camera = new Camera();
require('../rounds')(async () => {
  for (let at = 0; at < 100; at++) camera.capture();
});
