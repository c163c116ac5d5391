// A recording and the heap of Python that was taken of its process: one time, and native memory
// beside the objects.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { readdirSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { waitUntil } from './browser.mjs';
import { HEAPR, run } from './heapr.mjs';
import { viewed } from './viewed.mjs';

let child;
let heap = '';
const shown = viewed(async (work) => {
  writeFileSync(join(work.folder, 'app.py'), 'import sys, zlib\nSTREAMS = [zlib.compressobj() for _ in range(20)]\nprint("made", flush=True)\nfor line in sys.stdin:\n    STREAMS.append(zlib.compressobj())\n    if len(STREAMS) == 70: print("grown", flush=True)\n');
  child = spawn('/usr/bin/python3', ['app.py'], { cwd: work.folder, stdio: ['pipe', 'pipe', 'ignore'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  await run(work, HEAPR, ['start', 'tied', '--quiet', '--pid', String(child.pid), '-o', 'app.heapr']);
  const grown = new Promise((resolve) => child.stdout.once('data', resolve));
  child.stdin.write('\n'.repeat(50));
  await grown;
  await run(work, HEAPR, ['snapshot', 'take', '--heap', 'python', String(child.pid)]);
  await run(work, HEAPR, ['stop', '--quiet', 'tied']);
  heap = readdirSync(work.folder).find((name) => name.endsWith('.heapsnapshot'));
  return ['app.heapr', heap];
});
after(() => child?.kill('SIGKILL'));

test('a heap is shown below the time of its recording, and leads to what was live then', { timeout: 120_000 }, async () => {
  await shown.show('file=1');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  const [trace, file] = await shown.page.evaluate(async () => (await (await fetch('/api/files')).json()).files);
  assert.equal(file.taken.file, 0);
  assert.equal(file.taken.pid, child.pid);
  assert.ok(file.taken.time_ns > 0 && file.taken.time_ns <= trace.trace.duration_ns);
  assert.equal(await shown.page.locator('.timeline canvas').count(), 1);
  await shown.page.click('text=what was live then');
  await waitUntil(shown.page, (at) => location.hash.includes(`at=${at}ns`) && !location.hash.includes('file='), file.taken.time_ns);
  await shown.page.waitForSelector('.where-pieces li');
  // The moment goes along to the heap, and back.
  await shown.page.click(`.file-tab:has-text("${heap}")`);
  await waitUntil(shown.page, (at) => location.hash.includes(`at=${at}ns`) && location.hash.includes('file=1'), file.taken.time_ns);
  assert.deepEqual(shown.browser.errors, []);
});

test('native memory stands beside the retained size, and is what snapshot holders adds up', { timeout: 120_000 }, async () => {
  await shown.show('file=1&view=dominators');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  const holders = JSON.parse(await run(shown.work, HEAPR, ['snapshot', 'holders', heap, '--top', '100000', '--format', 'json']));
  const native = await shown.page.evaluate(async () => (await (await fetch('/api/files')).json()).files[1].snapshot.native_bytes);
  assert.ok(native > 70 * 100_000, `${native} bytes`);
  assert.equal(native, holders.block_bytes);
  await shown.show('file=1&view=summary');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  const rows = await shown.page.evaluate(() => {
    const heads = [...document.querySelectorAll('.table [role=columnheader]')].map((head) => head.textContent.replace(/ [▾▴]$/, ''));
    const number = (cell) => Number(cell.title.replace(/ bytes?$/, '').replaceAll(',', ''));
    return [...document.querySelectorAll('.rows-block .row')].map((row) => [row.children[0].textContent, number(row.children[heads.indexOf('Retained Size')]), number(row.children[heads.indexOf('Native')])]);
  });
  const streams = rows.find(([name]) => name.startsWith('zlib.Compress'));
  assert.ok(streams && streams[2] > 70 * 100_000 && streams[2] <= streams[1], JSON.stringify(rows.slice(0, 5)));
  for (const [name, retained, bytes] of rows) assert.ok(bytes <= retained, `${name}: ${bytes} of ${retained}`);
  assert.deepEqual(shown.browser.errors, []);
});
