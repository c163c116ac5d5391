// Each sign-in sets a timer of a day that ends the session; the timer holds all of the session.
// suspect: TimersList
// place: long_timeouts.js:
// collects: Session|Timeout
'use strict';
class Session {
  constructor(number) {
    this.number = number;
    this.basket = [`thing ${number}`];
  }
}
let number = 0;
function signIn() {
  const session = new Session(number++);
  setTimeout(function expire() {
    session.basket = null;
  }, 86_400_000);
}
require('../rounds')(async () => {
  for (let at = 0; at < 400; at++) signIn();
});
