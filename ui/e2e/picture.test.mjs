// The picture of the page in README.md: the server of the book's ten minutes in C++, as the page
// opens on it. HEAPR_WRITE_GENERATED=1 takes the picture anew.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openBrowser } from './browser.mjs';
import { HEAPR, run, view, workFolder } from './heapr.mjs';

const docs = join(dirname(fileURLToPath(import.meta.url)), '../../docs');
const PICTURE = join(docs, 'page.png');
const [WIDTH, HEIGHT] = [1280, 720];

test('the first screen names what grows, with its line, whole on a low screen and in three columns on a wide one', { timeout: 180_000 }, async () => {
  const work = workFolder();
  const browser = await openBrowser({ width: WIDTH, height: HEIGHT });
  let server;
  try {
    const [, source] = /^```cpp file=server\.cc\n(.*?)^```$/ms.exec(readFileSync(join(docs, 'book/ten-minutes/cpp.md'), 'utf8'));
    writeFileSync(join(work.folder, 'server.cc'), source);
    await run(work, 'g++', ['-g', '-O1', '-fno-inline', '-o', 'server', 'server.cc']);
    await run(work, HEAPR, ['run', '--quiet', '-o', 'server.heapr', '--', './server']);
    server = await view(work, ['server.heapr']);
    const { page } = browser;
    await page.goto(server.url);
    const finding = page.locator('text=/Memory grows: handle_request \\(server\\.cc:\\d+\\)/').first();
    await finding.waitFor();
    // The compiler puts the call that makes the string on the closing brace.
    const line = 1 + source.split('\n').findIndex((text) => text.includes('new Session'));
    assert.match(await finding.textContent(), new RegExp(`server\\.cc:${line}\\)`));
    const box = await page.locator('.finding.is-first').boundingBox();
    assert.ok(box.y + box.height <= HEIGHT, `the first finding ends at ${box.y + box.height} of ${HEIGHT}`);
    assert.deepEqual(browser.errors, []);
    if (process.env.HEAPR_WRITE_GENERATED) writeFileSync(PICTURE, await page.screenshot());
    const header = readFileSync(PICTURE);
    assert.deepEqual([header.readUInt32BE(16), header.readUInt32BE(20)], [WIDTH, HEIGHT]);
    await page.setViewportSize({ width: 3840, height: 2160 });
    const [sentence, code, evidence] = await Promise.all(['.sentence', '.source', '.evidence'].map((part) => page.locator(`.finding.is-first ${part}`).boundingBox()));
    assert.ok(sentence.x + sentence.width <= code.x && code.x + code.width <= evidence.x, 'answer, source and evidence stand beside one another');
    assert.ok(evidence.x + evidence.width > 3000, 'the width is used');
  } finally {
    await browser.close();
    await server?.stop();
    work.remove();
  }
});
