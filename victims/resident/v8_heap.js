// Objects, strings and an array buffer; then, for each line on its input that names one, what V8
// says of itself.
const v8 = require('v8');

const kept = Array.from({ length: 500000 }, (_, at) => ({ at, text: `number ${at}` }));
const buffer = new Uint8Array(20 << 20).fill(1);
const figures = {
  used_bytes: () => process.memoryUsage().heapUsed,
  total_bytes: () => process.memoryUsage().heapTotal,
  external_bytes: () => process.memoryUsage().external,
  array_buffer_bytes: () => process.memoryUsage().arrayBuffers,
  old_space: () => v8.getHeapSpaceStatistics().find((space) => space.space_name === 'old_space').space_used_size,
};
console.log('ready');
let rest = '';
process.stdin.on('data', (text) => {
  // A line may come in parts.
  const lines = (rest + text).split('\n');
  rest = lines.pop();
  for (const name of lines) console.log(`${name} ${figures[name]()}`);
  if (kept.length + buffer.length === 0) process.exit(1);
});
process.stdin.on('end', () => process.exit(0));
