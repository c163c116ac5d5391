// Rooms are joined by players; the game ends and nobody leaves.
// suspect: Adapter.rooms of adapter|Adapter.sids of adapter
// place: socket_io_rooms.js:
'use strict';
const { Server } = require('socket.io');
const io = new Server();
const adapter = io.of('/').adapter;
let game = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 200; at++) {
    adapter.addAll(`player-${game}`, new Set([`game-${game}`, 'lobby']));
    game++;
  }
});
