// Death: V8's heap meets its own limit, far below that of the group.
const fs = require('fs');
const orders = [];
function remember(number) {
  orders.push({ number, items: Array.from({ length: 40 }, (_, item) => ({ item, name: `item ${number}-${item}` })) });
}
let number = 0;
function work() {
  if (!fs.existsSync('go')) return setTimeout(work, 5);
  for (let i = 0; i < 200; i++) remember(number++);
  setTimeout(work, 5);
}
work();
