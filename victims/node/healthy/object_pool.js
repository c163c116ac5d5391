// Particles are taken from a pool and given back.
// suspect: none
'use strict';
const pool = [];
for (let at = 0; at < 300; at++) pool.push({ x: 0.5, y: 0.5, history: [] });
require('../rounds')(async () => {
  const used = pool.splice(0, 200);
  for (const particle of used) {
    particle.x = Math.random();
    particle.history.length = 0;
    particle.history.push(particle.x);
  }
  pool.push(...used);
});
