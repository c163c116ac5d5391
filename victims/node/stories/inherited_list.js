// Every controller's constructor puts itself into a list of its base class.
// suspect: function Controller.all
// place: inherited_list.js:7
'use strict';
class Controller {
  static all = [];
  constructor(url) {
    this.url = url;
    Controller.all.push(this);
  }
}
class OrderController extends Controller {}
class CartController extends Controller {}
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 200; at++) {
    new OrderController(`/order/${number++}`);
    new CartController(`/cart/${number}`);
  }
});
