// Resident memory on the page: a series of readings, a recording, and the page that heapr explain
// writes, compared with heapr explain's numbers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { waitUntil } from './browser.mjs';
import { HEAPR, run, runShown } from './heapr.mjs';
import { viewed } from './viewed.mjs';

/** Allocates more and more, until it was read four times, or for a number of steps. */
const HOLD = `
import os, sys, time
kept = []
for step in range(int(sys.argv[2])):
    kept.append(bytearray(b'x') * (1 << 18))
    time.sleep(0.1)
    if os.path.exists(sys.argv[1]) and open(sys.argv[1], 'rb').read().count(b'\\n') >= 4:
        break
`;
const shown = viewed(async (work) => {
  writeFileSync(join(work.folder, 'hold.py'), HOLD);
  await run(work, `python3 hold.py looks.json 600 & '${HEAPR}' explain $! --every 0.1 -o looks.json; wait`, [], { shell: true });
  await run(work, HEAPR, ['run', '--quiet', '--snapshot-every', '0.3', '-o', 'hold.heapr', '--', 'python3', 'hold.py', 'none', '12']);
  await run(work, HEAPR, ['explain', '--format', 'html', '-o', 'looks.html', 'looks.json']);
  return ['hold.heapr', 'looks.json'];
});

/** Returns the page's lines: label and bytes. */
const lines = async () => {
  await shown.page.waitForSelector('.resident-lines tbody tr');
  await waitUntil(shown.page, () => !document.querySelector('.resident.is-old'));
  return shown.page.locator('.resident-lines tbody tr').evaluateAll((rows) => rows.map((row) => [row.children[0].textContent, Number(row.children[2].title.replace(/ bytes?$/, '').replaceAll(',', ''))]));
};
const open = async (address) => {
  await shown.page.goto('about:blank');
  await shown.page.goto(address);
};
const isAccountedFor = (found) => assert.equal(found.slice(0, -1).reduce((sum, [, bytes]) => sum + bytes, 0), found.at(-1)[1]);

test('a series of looks has at each moment the lines that heapr explain has', async () => {
  await open(`${shown.origin}/#file=1`);
  const found = await lines();
  isAccountedFor(found);
  const printed = await runShown(shown.work, await shown.page.textContent('.command code'));
  assert.equal(found.at(-1)[1], printed.resident.rss_bytes);
  assert.deepEqual(new Set(found.slice(0, -1).map(([, bytes]) => bytes)), new Set(printed.resident.lines.map((line) => line.bytes).filter((bytes) => bytes > 0)));
  assert.ok(printed.moments.length > 2, `${printed.moments.length} moments`);
  await shown.page.locator('.resident input[type=range]').fill('0');
  await waitUntil(shown.page, (bytes) => document.querySelector('.resident-lines tbody tr:last-child td:nth-child(3)')?.title.replaceAll(',', '') === `${bytes} bytes`, printed.moments[0].rss_bytes);
  isAccountedFor(await lines());
  assert.deepEqual(shown.browser.errors, []);
});

test('areas, bands and cells are drawn, and a cell says what it is', async () => {
  await open(`${shown.origin}/#file=1`);
  await shown.page.waitForSelector('.page-strip canvas');
  for (const name of ['.resident-map', '.resident-bands', '.page-strip']) {
    await waitUntil(shown.page, (name) => {
      const canvas = document.querySelector(`${name} canvas`);
      return canvas.width > 0 && canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value, at) => at % 4 === 3 && value > 0);
    }, name);
  }
  await shown.page.locator('.page-strip canvas').focus();
  await shown.page.keyboard.press('ArrowRight');
  assert.match(await shown.page.textContent('.page-strip [role=status]'), /^0x[0-9a-f]+: /);
  await shown.page.locator('.resident-map canvas').click({ position: { x: 30, y: 40 } });
  await shown.page.waitForSelector('.resident-lines tr.is-on');
  assert.deepEqual(shown.browser.errors, []);
});

test('a recording has a treemap of its moments', async () => {
  await shown.show('view=resident');
  const found = await lines();
  isAccountedFor(found);
  const printed = await runShown(shown.work, await shown.shownCommand());
  assert.equal(found.at(-1)[1], printed.resident.rss_bytes);
  await shown.page.waitForSelector('.resident-map canvas');
  assert.deepEqual(shown.browser.errors, []);
});

test('the page that heapr explain writes needs no server', async () => {
  await open(`${shown.origin}/#file=1`);
  const served = await lines();
  await open(pathToFileURL(join(shown.work.folder, 'looks.html')).href);
  assert.deepEqual(await lines(), served);
  await shown.page.waitForSelector('.page-strip canvas');
  await shown.page.locator('.resident input[type=range]').fill('1');
  await waitUntil(shown.page, () => document.querySelector('.resident input[type=range]')?.value === '1' && !document.querySelector('.resident.is-old'));
  isAccountedFor(await lines());
  assert.equal(await shown.page.locator('.message.is-error').count(), 0);
  assert.deepEqual(shown.browser.errors, []);
});
