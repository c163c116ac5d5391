// Uploads are kept as blobs until they are fetched; most never are.
// suspect: Uploads.byId
// place: blob_store.js:6
'use strict';
class Uploads {
  constructor() {
    this.byId = new Map();
  }
  add(text) {
    this.byId.set(`id-${this.byId.size}`, new Blob([text], { type: 'text/plain' }));
  }
}
const uploads = new Uploads();
require('../rounds')(async () => {
  for (let at = 0; at < 200; at++) uploads.add(`upload ${at}`);
});
