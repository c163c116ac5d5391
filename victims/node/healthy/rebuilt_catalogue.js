// A catalogue is built anew in each round, of the same size, and takes the place of the old one.
// suspect: none
'use strict';
class Product {
  constructor(number) {
    this.number = number;
    this.name = `product ${number} ${Math.random()}`;
  }
}
let catalogue = new Map();
require('../rounds')(async () => {
  const next = new Map();
  for (let at = 0; at < 500; at++) next.set(at, new Product(at));
  catalogue = next;
  return catalogue.size;
});
