// One model for each tenant, made when a tenant is first seen, on the one connection.
// suspect: NativeConnection.models|NativeConnection.collections|Mongoose.models|NativeConnection|Mongoose
// place: mongoose
'use strict';
const mongoose = require('mongoose');
let tenant = 0;
require('../rounds')(async () => {
  for (let at = 0; at < 20; at++) {
    mongoose.model(`Order${tenant++}`, new mongoose.Schema({ number: Number, lines: [String] }));
  }
});
