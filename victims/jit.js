// Node: frames of JIT code between native ones, garbage collection threads, addresses of code that change.
// needs: node
// wrap: node {}
// seconds: 120
// verify: 16
// perhaps-notice: in no recorded block
// expect: frame=node::Start allocs>=100
let sum = 0;
for (let round = 0; round < 200; round++) {
  const parts = [];
  for (let i = 0; i < 200; i++) parts.push(Buffer.alloc(20000, i & 255));
  sum += JSON.parse(JSON.stringify({ parts: parts.map((part) => part[0]) })).parts.length;
  sum += require('zlib').deflateSync(parts[0]).length > 0 ? 1 : 0;
}
console.log(sum);
