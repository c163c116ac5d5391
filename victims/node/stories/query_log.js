// A database driver keeps its queries for a debug view, on by mistake.
// suspect: Connection.log
// place: query_log.js:5
'use strict';
class Connection {
  log = [];
  query(text, values) {
    this.log.push({ text, values, at: new Date() });
    return [];
  }
}
const connection = new Connection();
require('../rounds')(async () => {
  for (let at = 0; at < 300; at++) connection.query('select * from orders where id = ?', [at]);
});
