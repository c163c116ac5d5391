// Buffers, JSON and compression: native blocks beside a JavaScript heap.
const zlib = require('zlib');
let sum = 0;
for (let round = 0; round < 1200; round++) {
  const parts = [];
  for (let i = 0; i < 400; i++) parts.push(Buffer.allocUnsafeSlow(4096 + i).fill(i & 255));
  const text = JSON.stringify({ round, names: parts.map((part, i) => `part-${i}-${part.length}`) });
  sum += JSON.parse(text).names.length + zlib.deflateSync(Buffer.from(text)).length;
  sum += Buffer.concat(parts).length;
}
console.log(sum);
