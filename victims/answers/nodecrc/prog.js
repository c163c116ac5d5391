// sums of the packets of a stream
const { crc32c } = require(process.env.ANSWERS_CACHE + "/nodecrc/node_modules/@node-rs/crc32");
const packet = Buffer.alloc(1000, "packet ");
function sumPacket(n) { packet.writeUInt32LE(n); return crc32c(packet); }
let sum = 0;
for (let n = 0; n < Number(process.argv[2]); n++) sum = (sum + sumPacket(n)) % 65536;
console.log(sum);
