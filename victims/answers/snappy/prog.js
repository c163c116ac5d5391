// packs records, one after the other
const snappy = require(process.env.ANSWERS_CACHE + '/snappy/node_modules/snappy')
function packRecord(n) {
  const record = Buffer.alloc(10000, 'record ' + n)
  return snappy.compressSync(record).length
}
let packed = 0
function some(n) {
  for (let k = 0; k < 20; k++) packed += packRecord(n * 20 + k)
  if (n > 0) setTimeout(some, 1, n - 1)
  else console.log(packed > 0)
}
some(Number(process.argv[2]))
