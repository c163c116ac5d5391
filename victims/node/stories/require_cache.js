// A configuration file is loaded anew for each request; its loader keeps all its children.
// suspect: children (module
// place: require_cache.js:
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'stories-')), 'config.js');
fs.writeFileSync(file, 'module.exports = { name: "config", list: [1, 2, 3].map((n) => ({ n })) };\n');
require('../rounds')(async () => {
  for (let at = 0; at < 60; at++) {
    delete require.cache[file];
    require(file);
  }
});
