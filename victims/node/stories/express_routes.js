// A route is added again for each request that comes.
// suspect: function router.stack of app
// place: express_routes.js:
'use strict';
const express = require('express');
const app = express();
require('../rounds')(async () => {
  for (let at = 0; at < 150; at++) app.get('/health', (request, response) => response.send('well'));
});
