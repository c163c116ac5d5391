// A counter of requests with the user's id as a label: one time series for each user.
// suspect: Counter.hashMap
'use strict';
const { Counter } = require('prom-client');
const requests = new Counter({ name: 'requests_total', help: 'requests', labelNames: ['user', 'route'] });
let user = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) requests.inc({ user: `user-${user++}`, route: '/cart' });
});
