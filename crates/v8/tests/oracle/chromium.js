// Opens a page in Chromium and writes two snapshots of it. The page has DOM nodes (some of them
// detached), event handlers and frames.
//
//   node chromium.js DIRECTORY A.heapsnapshot B.heapsnapshot [--expose-internals] [--numeric-values]
//
// Chromium comes from an npm package into DIRECTORY.
'use strict';
const { execFileSync, spawn } = require('child_process');
const { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } = require('fs');
const { join, resolve } = require('path');
const { brotliDecompressSync } = require('zlib');

const [directory, first, second] = process.argv.slice(2);
const options = {
  reportProgress: false,
  exposeInternals: process.argv.includes('--expose-internals'),
  captureNumericValue: process.argv.includes('--numeric-values'),
};

const binary = join(resolve(directory), 'chromium');
if (!existsSync(binary)) {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'package.json'), '{ "private": true }\n');
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '@sparticuz/chromium@123'], { cwd: directory, stdio: 'ignore' });
  const packed = readFileSync(join(directory, 'node_modules/@sparticuz/chromium/bin/chromium.br'));
  writeFileSync(`${binary}.partial`, brotliDecompressSync(packed), { mode: 0o755 });
  renameSync(`${binary}.partial`, binary);
}

const PAGE = `<body><div id=shown class="a b">text<p>more</p></div><iframe srcdoc="<p>in a frame</p>"></iframe><script>
  class Widget { constructor(n) { this.n = n; this.node = document.createElement('section'); this.node.append('detached ' + n); } }
  window.widgets = [];
  window.add = (count) => {
    for (let i = 0; i < count; i++) {
      const widget = new Widget(i);
      const inner = document.createElement('div');
      inner.id = 'inner' + i;
      widget.node.append(inner);
      inner.addEventListener('click', () => widget.n + i);
      widgets.push(widget);
      const shown = document.createElement('span');
      document.body.append(shown);
      shown.onclick = function () { return shown; };
      if (i % 3 === 0) shown.remove();
    }
  };
  window.weak = new WeakMap([[document.body, { held: 'by the body' }]]);
  add(40);
</script></body>`;

const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--single-process', '--no-zygote', '--remote-debugging-pipe',
  `--user-data-dir=${join(resolve(directory), `profile-${process.pid}`)}`, 'about:blank'];
const child = spawn(binary, flags, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
// The browser runs as a single process, because the package lacks its helper programs. It occasionally
// hangs in a loop at its start; the test then tries again.
const HUNG = 3;
setTimeout(() => {
  child.kill('SIGKILL');
  process.exit(HUNG);
}, 40_000).unref();
const waiting = new Map();
let receive = () => {};
let pending = '';
child.stdio[4].setEncoding('utf8').on('data', (data) => {
  const messages = (pending + data).split('\0');
  pending = messages.pop();
  for (const text of messages) {
    const message = JSON.parse(text);
    if (message.id) waiting.get(message.id)(message);
    else receive(message);
  }
});
let count = 0;
function call(method, params = {}, sessionId = undefined) {
  const id = ++count;
  child.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
  return new Promise((resolve, reject) => waiting.set(id, (answer) => (answer.error ? reject(new Error(`${method}: ${answer.error.message}`)) : resolve(answer.result))));
}

(async () => {
  const { targetInfos } = await call('Target.getTargets');
  const { targetId } = targetInfos.find((target) => target.type === 'page');
  const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
  const page = (method, params) => call(method, params, sessionId);
  await page('Page.enable');
  await page('HeapProfiler.enable');
  const { frameTree } = await page('Page.getFrameTree');
  await page('Page.setDocumentContent', { frameId: frameTree.frame.id, html: PAGE });
  const take = async (file) => {
    const out = openSync(file, 'w', 0o600);
    receive = ({ method, params }) => method === 'HeapProfiler.addHeapSnapshotChunk' && writeSync(out, params.chunk);
    await page('HeapProfiler.collectGarbage');
    await page('HeapProfiler.takeHeapSnapshot', options);
    closeSync(out);
  };
  await take(first);
  await page('Runtime.evaluate', { expression: 'add(25); widgets.splice(0, 10); undefined' });
  await take(second);
  child.kill('SIGKILL');
})().catch((error) => {
  child.kill('SIGKILL');
  console.error(error);
  process.exit(1);
});
