// Tokens with an end: old ones are swept in each round.
// suspect: none
'use strict';
const tokens = new Map();
let now = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) tokens.set(`token ${now}-${at}`, { until: now + 1, at });
  now++;
  for (const [key, token] of tokens) if (token.until < now) tokens.delete(key);
});
