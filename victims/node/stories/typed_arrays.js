// Every series of measurements that a client asked for is kept as an array of numbers.
// suspect: Chart.series
// place: typed_arrays.js:8
// collects: Float64Array
'use strict';
let number = 0;
class Chart {
  constructor() {
    this.series = {};
  }
  draw() {
    this.series[`s${number++}`] = new Float64Array(128);
  }
}
const chart = new Chart();
require('../rounds')(async () => {
  for (let at = 0; at < 100; at++) chart.draw();
});
