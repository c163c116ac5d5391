// A data loader that is made once for the whole process instead of once for each request.
// suspect: DataLoader._cacheMap of users
// place: dataloader_global.js:
'use strict';
const DataLoader = require('dataloader');
const users = new DataLoader(async (ids) => ids.map((id) => ({ id, name: `user ${id}` })));
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) await users.load(number++);
});
