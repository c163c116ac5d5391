// What a person does with V8 snapshots, on the real server, against `heapr snapshot`.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openBrowser, waitUntil } from './browser.mjs';
import { HEAPR, run, runShown, view, workFolder } from './heapr.mjs';

/** A program that keeps its sessions, with markup in what it keeps. */
const LEAK = `
const v8 = require('node:v8');
class Session { constructor(id) { this.id = id; this.text = '<img src=x onerror=window.markupRan=1> ' + id; this.fields = { a: [id], b: {} }; } }
class MemoryStore { constructor() { this.sessions = new Map(); } }
globalThis.store = new MemoryStore();
const grow = (count) => { for (let id = 0; id < count; id += 1) globalThis.store.sessions.set(globalThis.store.sessions.size, new Session(globalThis.store.sessions.size)); };
grow(1000);
v8.writeHeapSnapshot('one.heapsnapshot');
grow(3000);
v8.writeHeapSnapshot('two.heapsnapshot');
grow(3000);
v8.writeHeapSnapshot('three.heapsnapshot');
`;
let work, server, browser, page, origin;

before(async () => {
  work = workFolder();
  writeFileSync(join(work.folder, 'leak.js'), LEAK);
  await run(work, process.execPath, ['leak.js']);
  server = await view(work, ['one.heapsnapshot', 'two.heapsnapshot', 'three.heapsnapshot']);
  browser = await openBrowser();
  page = browser.page;
  await page.goto(server.url);
  assert.ok(!page.url().includes('token'), 'the token stands in no address that is shared');
  await page.goto(new URL(server.url).origin);
  await page.waitForSelector('.tabs');
  origin = new URL(server.url).origin;
}, { timeout: 180_000 });
after(async () => {
  await browser?.close();
  await server?.stop();
  work?.remove();
});
beforeEach(() => {
  browser.errors.length = 0;
});

async function show(hash) {
  await page.goto('about:blank');
  await page.goto(`${origin}/#${hash}`);
  await page.waitForSelector('.tabs');
}
const exact = (locator) => locator.evaluateAll((rows) => rows.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => [...row.children].map((cell) => cell.title)));

test('the summary has the numbers of heapr snapshot summary', async () => {
  await show('file=1');
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  const printed = JSON.parse(await run(work, HEAPR, ['snapshot', 'summary', 'two.heapsnapshot', '--format', 'json']));
  const rows = await exact(page.locator('.rows-block .row'));
  assert.ok(rows.length > 10);
  rows.slice(0, 10).forEach((row, at) => {
    const expected = printed.rows[at];
    assert.ok(row[0].startsWith(expected.class), `${row[0]} is ${expected.class}`);
    assert.equal(row.at(-1), `${expected.retained_bytes.toLocaleString('en')} bytes`);
    assert.equal(row.at(-2), `${expected.shallow_bytes.toLocaleString('en')} bytes`);
  });
  assert.deepEqual(browser.errors, []);
});

test('a class opens to its objects, an object shows who keeps it alive', async () => {
  await show('file=1&match=Session');
  await waitUntil(page, () => [...document.querySelectorAll('.class-name')].some((name) => name.textContent === 'Session'));
  await page.locator('.row:has(.class-name:text-is("Session")) .twisty').click();
  await page.waitForSelector('.row[aria-level="2"] .object-name');
  await page.locator('.row[aria-level="2"]').first().click();
  await page.waitForSelector('.object-pane .row[aria-rowindex="2"]');
  await page.click('.object-pane button:has-text("Retaining paths")');
  await page.waitForSelector('.path-object');
  const names = await page.locator('.path-object strong').allTextContents();
  assert.ok(names.some((name) => name.includes('MemoryStore')), names.join());
  await page.click('.object-pane button:has-text("Fields")');
  await page.waitForSelector('.object-pane .edge:has-text("text")');
  assert.equal(await page.evaluate(() => window.markupRan), undefined);
  assert.deepEqual(browser.errors, []);
});

test('the comparison counts what is new, as heapr snapshot diff', async () => {
  await show('file=1&view=comparison&before=0&match=Session');
  await page.waitForSelector('.row:has(.class-name:text-is("Session"))');
  const row = (await exact(page.locator('.row:has(.class-name:text-is("Session"))')))[0];
  const printed = JSON.parse(await run(work, HEAPR, ['snapshot', 'diff', 'one.heapsnapshot', 'two.heapsnapshot', '--format', 'json']));
  const expected = printed.rows.find((candidate) => candidate.class === 'Session');
  assert.equal(expected.new_count, 3000);
  assert.equal(row[1], expected.new_count.toLocaleString('en'));
  assert.equal(row[4], `${expected.new_bytes.toLocaleString('en')} bytes`);
});

test('the suspect is the store', async () => {
  await show('file=2&view=suspects');
  await page.waitForSelector('.suspect', { timeout: 60_000 });
  assert.match(await page.locator('.suspect h2').first().textContent(), /MemoryStore\.sessions/);
  await page.locator('.suspect').first().locator('button:has-text("Show")').click();
  await page.waitForSelector('.object-pane');
});

test('containment, dominators, statistics, treemap and lists show something', async () => {
  for (const view of ['containment', 'dominators']) {
    await show(`file=1&view=${view}`);
    await page.waitForSelector('.rows-block .row[aria-rowindex="2"] .heap-name');
    await page.locator('.row[aria-rowindex="2"]').click();
    await page.keyboard.press('ArrowRight');
    await page.waitForSelector('.row[aria-level="2"]');
  }
  await show('file=1&view=statistics');
  await page.waitForSelector('.ring');
  const printed = JSON.parse(await run(work, HEAPR, ['snapshot', 'statistics', 'two.heapsnapshot', '--format', 'json']));
  const titles = await page.locator('.statistics td[title]').evaluateAll((cells) => cells.map((cell) => cell.title));
  for (const { bytes } of printed.rows) assert.ok(titles.includes(`${bytes.toLocaleString('en')} bytes`), `${bytes} in ${titles}`);
  await show('file=1&view=treemap');
  await page.waitForSelector('.treemap canvas');
  for (const list of ['strings', 'collections', 'shapes', 'fanout', 'closures']) {
    await show(`file=1&view=lists&list=${list}`);
    await page.waitForSelector('.rows-block .row[aria-rowindex="2"] .cell:nth-child(2)');
  }
  assert.deepEqual(browser.errors, []);
});

test('search finds by string and by id', async () => {
  await show('file=1&view=search');
  await page.fill('.search', 'onerror=window.markupRan=1');
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"] .heap-name');
  await page.locator('.row[aria-rowindex="2"]').click();
  await page.waitForSelector('.object-pane');
  const id = /object=(\d+)/.exec(page.url())[1];
  await page.fill('.view .search', `@${id}`);
  await waitUntil(page, () => document.querySelectorAll('.pane .view .rows-block .row').length === 1);
  assert.equal(await page.evaluate(() => window.markupRan), undefined);
  const command = await page.textContent('.filter-row .command code').catch(() => null);
  if (command?.startsWith('heapr')) await runShown(work, command);
});
