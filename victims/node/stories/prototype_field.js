// A list that was meant for each object stands on the prototype, and all share it.
// suspect: function Visitor.prototype.pages|function Visitor.pages
// place: prototype_field.js:5
'use strict';
function Visitor(name) {
  this.name = name;
}
Visitor.prototype.pages = [];
Visitor.prototype.visit = function (page) {
  this.pages.push({ page, by: this.name });
};
let number = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) new Visitor(`visitor ${number++}`).visit(`/p/${at}`);
});
