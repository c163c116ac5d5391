// Use of V8 snapshots on the page, on the real server, compared with `heapr snapshot`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from './browser.mjs';
import { HEAPR, run, runShown, view } from './heapr.mjs';
import { viewed } from './viewed.mjs';

/** Program that keeps its sessions, with markup in their texts. */
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
const shown = viewed(async (work) => {
  writeFileSync(join(work.folder, 'leak.js'), LEAK);
  await run(work, process.execPath, ['leak.js']);
  return ['one.heapsnapshot', 'two.heapsnapshot', 'three.heapsnapshot'];
});
const { show } = shown;
const exact = (locator) => locator.evaluateAll((rows) => rows.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => [...row.children].map((cell) => cell.title)));

const rowCount = async () => Number(await shown.page.getAttribute('.view [aria-rowcount]', 'aria-rowcount'));

test('the summary has the numbers of heapr snapshot summary', async () => {
  await show('file=1&view=summary');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  const printed = JSON.parse(await run(shown.work, HEAPR, ['snapshot', 'summary', 'two.heapsnapshot', '--format', 'json']));
  const rows = await exact(shown.page.locator('.rows-block .row'));
  assert.ok(rows.length > 10);
  rows.slice(0, 10).forEach((row, at) => {
    const expected = printed.rows[at];
    assert.ok(row[0].startsWith(expected.class), `${row[0]} is ${expected.class}`);
    assert.equal(row.at(-1), `${expected.retained_bytes.toLocaleString('en')} bytes`);
    assert.equal(row.at(-2), `${expected.shallow_bytes.toLocaleString('en')} bytes`);
  });
  assert.deepEqual(shown.browser.errors, []);
});

test('a class opens to its objects, an object shows who keeps it alive', async () => {
  await show('file=1&view=summary&match=Session');
  await waitUntil(shown.page, () => [...document.querySelectorAll('.class-name')].some((name) => name.textContent === 'Session'));
  await shown.page.locator('.row:has(.class-name:text-is("Session")) .twisty').click();
  await shown.page.waitForSelector('.row[aria-level="2"] .object-name');
  await shown.page.locator('.row[aria-level="2"]').first().click();
  await shown.page.waitForSelector('.object-pane .row[aria-rowindex="2"]');
  await shown.page.click('.object-pane button:has-text("Retaining paths")');
  await shown.page.waitForSelector('.path-object');
  const names = await shown.page.locator('.path-object strong').allTextContents();
  assert.ok(names.some((name) => name.includes('MemoryStore')), names.join());
  await shown.page.click('.object-pane button:has-text("Fields")');
  await shown.page.waitForSelector('.object-pane .edge:has-text("text")');
  assert.equal(await shown.page.evaluate(() => window.markupRan), undefined);
  assert.deepEqual(shown.browser.errors, []);
});

test('the comparison counts what is new, as heapr snapshot diff', async () => {
  await show('file=1&view=comparison&before=0&match=Session');
  await shown.page.waitForSelector('.row:has(.class-name:text-is("Session"))');
  const row = (await exact(shown.page.locator('.row:has(.class-name:text-is("Session"))')))[0];
  const printed = JSON.parse(await run(shown.work, HEAPR, ['snapshot', 'diff', 'one.heapsnapshot', 'two.heapsnapshot', '--format', 'json']));
  const expected = printed.rows.find((candidate) => candidate.class === 'Session');
  assert.equal(expected.new_count, 3000);
  assert.equal(row[1], expected.new_count.toLocaleString('en'));
  assert.equal(row[4], `${expected.new_bytes.toLocaleString('en')} bytes`);
});

test('over a thousand cells of summaries, comparisons and dominators are those of the commands', { timeout: 240_000 }, async () => {
  const numbers = async (columns) => {
    await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
    await waitUntil(shown.page, () => !document.querySelector('.table.is-old, .is-waiting'));
    const rows = await exact(shown.page.locator('.rows-block .row:not([aria-level="2"])'));
    return rows.map((row) => row.slice(-columns).map((text) => Number(text.replace(/ bytes?$/, '').replaceAll(',', '').replace('−', '-'))).join(' '));
  };
  let cells = 0;
  const compare = async (hash, columns) => {
    await show(hash);
    const command = await shown.shownCommand();
    const report = await runShown(shown.work, command);
    const printed = new Set(report.rows.map((row) => columns.map((column) => row[column]).join(' ')));
    const seen = await numbers(columns.length);
    assert.ok(seen.length > 4, `${command}: ${seen.length} rows`);
    for (const row of seen) assert.ok(printed.has(row), `${row} is not of ${command}`);
    cells += seen.length * columns.length;
  };
  const change = ['new_count', 'deleted_count', 'count_delta', 'new_bytes', 'deleted_bytes', 'bytes_delta'];
  for (const [file, before] of [[1, 0], [2, 0], [2, 1], [0, 2]]) await compare(`file=${file}&view=comparison&before=${before}`, change);
  for (const file of [0, 1, 2]) {
    for (const sort of ['', '&sort=shallow']) await compare(`file=${file}&view=summary${sort}`, ['shallow_bytes', 'retained_bytes']);
    await compare(`file=${file}&view=dominators`, ['shallow_bytes', 'retained_bytes']);
  }
  assert.ok(cells >= 1000, `${cells} cells were compared`);
  assert.deepEqual(shown.browser.errors, []);
});

test('three snapshots are shown side by side, what grew steadily first', async () => {
  await show('file=2&view=comparison');
  await shown.page.click('.switch button:has-text("All 3")');
  await shown.page.waitForSelector('.growth');
  const heads = await shown.page.locator('.row.is-head .cell').allTextContents();
  for (const name of ['one', 'two', 'three']) assert.ok(heads.some((head) => head.startsWith(name)), `${name} in ${heads}`);
  const growth = (await exact(shown.page.locator('.rows-block .row'))).map((row) => Number(row[3].replace(/ bytes?$/, '').replaceAll(',', '')));
  assert.ok(growth[0] > 0 && growth[0] >= growth[5], growth.join());
  // Rows without a difference appear on request.
  const differing = await rowCount();
  await shown.page.click('label:has-text("also rows without a difference")');
  await waitUntil(shown.page, (count) => Number(document.querySelector('.view [aria-rowcount]')?.ariaRowCount) > count, differing);
  await shown.page.click('label:has-text("also rows without a difference")');
  await waitUntil(shown.page, (count) => Number(document.querySelector('.view [aria-rowcount]')?.ariaRowCount) === count, differing);
  await shown.page.fill('.view .search', 'Session');
  // All classes were there before: the table of the matching ones comes a moment later.
  await waitUntil(shown.page, () => !document.querySelector('.table.is-old') && [...document.querySelectorAll('.rows-block .class-name')].every((name) => name.textContent.includes('Session')));
  const row = (await exact(shown.page.locator('.row:has(.class-name:text-is("Session"))')))[0];
  const printed = await Promise.all(['one', 'two', 'three'].map(async (name) => JSON.parse(await run(shown.work, HEAPR, ['snapshot', 'summary', `${name}.heapsnapshot`, '--format', 'json'])).rows.find(({ class: of }) => of === 'Session')));
  assert.deepEqual(printed.map((line) => line.object_count), [1000, 4000, 7000]);
  printed.forEach((line, at) => {
    const whole = (count) => count.toLocaleString('en');
    assert.equal(row[5 + at], `${whole(line.retained_bytes)} bytes retained, ${whole(line.shallow_bytes)} bytes shallow, ${whole(line.object_count)} objects`);
  });
  assert.equal(row[2], '100.0 %');
  assert.equal(row[4], '+6,000');
  // A class opens to its objects in the shown snapshot.
  await shown.page.locator('.row:has(.class-name:text-is("Session")) .twisty').click();
  await shown.page.waitForSelector('.row[aria-level="2"] .object-name');
  assert.deepEqual(shown.browser.errors, []);
});

test('any snapshot may be the one that is compared with', async () => {
  await show('file=0&view=comparison&match=Session');
  await shown.page.selectOption('[aria-label="Compared with"]', '2');
  await shown.page.waitForSelector('.row:has(.class-name:text-is("Session"))');
  await waitUntil(shown.page, () => !document.querySelector('.table.is-old'));
  const row = async () => (await exact(shown.page.locator('.row:has(.class-name:text-is("Session"))')))[0];
  assert.equal((await row())[1], '6,000', 'new: the first one given is before');
  await shown.page.click('button:has-text("Turn")');
  await waitUntil(shown.page, () => !document.querySelector('.table.is-old') && [...document.querySelectorAll('.quiet')].some((text) => text.textContent.endsWith(`→ ${document.querySelector('.file-tab.is-on').textContent.trim()}`)));
  await shown.page.waitForSelector('.row:has(.class-name:text-is("Session"))');
  assert.equal((await row())[2], '6,000', 'deleted, as it goes back in time');
});

test('snapshots of two processes number their objects differently, which is said as the command says it', async () => {
  writeFileSync(join(shown.work.folder, 'again.js'), LEAK.replaceAll(/'(one|two|three)\.heapsnapshot'/g, "'again-$1.heapsnapshot'").replace('grow(1000)', 'const before = Array.from({ length: 5000 }, (_, id) => ({ id })); grow(1000)'));
  await run(shown.work, process.execPath, ['again.js']);
  const server = await view(shown.work, ['one.heapsnapshot', 'again-two.heapsnapshot']);
  try {
    await shown.page.goto(server.url);
    await shown.page.goto('about:blank');
    await shown.page.goto(`${new URL(server.url).origin}/#file=1&view=comparison`);
    await shown.page.waitForSelector('.message.is-warning:has-text("number their objects differently")');
    const row = await (async () => {
      await shown.page.goto(`${new URL(server.url).origin}/#file=1&view=comparison&match=Session`);
      await shown.page.waitForSelector('.row:has(.class-name:text-is("Session"))');
      return (await exact(shown.page.locator('.row:has(.class-name:text-is("Session"))')))[0];
    })();
    const printed = JSON.parse(await run(shown.work, HEAPR, ['snapshot', 'diff', 'one.heapsnapshot', 'again-two.heapsnapshot', '--format', 'json']));
    const expected = printed.rows.find((candidate) => candidate.class === 'Session');
    assert.deepEqual([row[1], row[2]], [expected.new_count.toLocaleString('en'), expected.deleted_count.toLocaleString('en')]);
    assert.deepEqual(shown.browser.errors, []);
  } finally {
    await server.stop();
    await shown.page.goto(shown.origin);
  }
});

test('the suspect is the store', async () => {
  await show('file=2&view=suspects');
  await shown.page.waitForSelector('.suspect', { timeout: 60_000 });
  assert.match(await shown.page.locator('.suspect h2').first().textContent(), /MemoryStore\.sessions/);
  await shown.page.locator('.suspect').first().locator('button:has-text("Show")').click();
  await shown.page.waitForSelector('.object-pane');
});

test('containment, dominators, statistics, treemap and lists show something', async () => {
  for (const view of ['containment', 'dominators']) {
    await show(`file=1&view=${view}`);
    await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"] .heap-name');
    await shown.page.locator('.row[aria-rowindex="2"]').click();
    await shown.page.keyboard.press('ArrowRight');
    await shown.page.waitForSelector('.row[aria-level="2"]');
  }
  await show('file=1&view=statistics');
  await shown.page.waitForSelector('.ring');
  const printed = JSON.parse(await run(shown.work, HEAPR, ['snapshot', 'statistics', 'two.heapsnapshot', '--format', 'json']));
  const titles = await shown.page.locator('.statistics td[title]').evaluateAll((cells) => cells.map((cell) => cell.title));
  for (const { bytes } of printed.rows) assert.ok(titles.includes(`${bytes.toLocaleString('en')} bytes`), `${bytes} in ${titles}`);
  await show('file=1&view=treemap');
  await shown.page.waitForSelector('.treemap canvas');
  for (const list of ['strings', 'collections', 'shapes', 'fanout', 'closures']) {
    await show(`file=1&view=lists&list=${list}`);
    await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"] .cell:nth-child(1)');
  }
  assert.deepEqual(shown.browser.errors, []);
});

test('search finds by string and by id', async () => {
  await show('file=1&view=search');
  await shown.page.fill('.search', 'onerror=window.markupRan=1');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"] .heap-name');
  await shown.page.locator('.row[aria-rowindex="2"]').click();
  await shown.page.waitForSelector('.object-pane');
  const id = /object=(\d+)/.exec(shown.page.url())[1];
  await shown.page.fill('.view .search', `@${id}`);
  await waitUntil(shown.page, () => document.querySelectorAll('.pane .view .rows-block .row').length === 1);
  assert.equal(await shown.page.evaluate(() => window.markupRan), undefined);
  const command = await shown.page.textContent('.filter-row .command code').catch(() => null);
  if (command?.startsWith('heapr')) await runShown(shown.work, command);
});
