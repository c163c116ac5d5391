// Requests at a constant load: V8's heap rises and falls, and nothing of the program grows.
// run: node
// finding: none
const recent = [];

function serve(number) {
  const body = Buffer.alloc(20000, number % 256);
  recent.push(body);
  if (recent.length > 50) recent.shift();
  return body.length + JSON.stringify({ number, body: 'x'.repeat(100) }).length;
}

let [number, sum] = [0, 0];
const timer = setInterval(() => {
  for (let request = 0; request < 40; request++) sum += serve(number++);
  if (number >= 24000) {
    clearInterval(timer);
    console.log(sum);
  }
}, 4);
