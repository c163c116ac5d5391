// What a person does with a trace, on the real server: every number that the page shows is that of the command line it shows.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openBrowser, waitUntil } from './browser.mjs';
import { HEAPR, run, runShown, view, workFolder } from './heapr.mjs';

let work, server, browser, page, origin;
const json = (count) => JSON.stringify(Array.from({ length: count }, (_, id) => ({ id, name: `item ${id}`, list: [id, id + 1, 'x'.repeat(id % 90)] })));

before(async () => {
  work = workFolder();
  writeFileSync(join(work.folder, 'a.json'), json(6000));
  writeFileSync(join(work.folder, 'b.json'), json(9000));
  for (const name of ['a', 'b']) await run(work, HEAPR, ['run', '-o', `${name}.heapr`, '--', 'jq', '-c', 'map(.list) | flatten | length', `${name}.json`]);
  writeFileSync(join(work.folder, 'broken.heapr'), 'GIF89a');
  server = await view(work, ['a.heapr', 'b.heapr', 'broken.heapr']);
  browser = await openBrowser();
  page = browser.page;
  await page.goto(server.url);
  assert.ok(!page.url().includes('token'), 'the token stands in no address that is shared');
  await page.goto(new URL(server.url).origin);
  await page.waitForSelector('.total');
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

/** The command line that is shown, once the view has its answer. */
async function shownCommand() {
  await page.waitForSelector('.filter-row .command code');
  await waitUntil(page, () => !document.querySelector('.table.is-old'));
  return page.textContent('.filter-row .command code');
}

/** Exact numbers of the first rows of the table, by column. */
async function firstRows(count, columns) {
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  await waitUntil(page, () => !document.querySelector('.table.is-old') && !document.querySelector('.is-waiting'));
  return page.evaluate(([count, columns]) => {
    const heads = [...document.querySelectorAll('.table [role=columnheader]')].map((head) => head.textContent.replace(/ [▾▴]$/, ''));
    return [...document.querySelectorAll('.rows-block .row')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).slice(0, count).map((row) => columns.map((column) => {
      const title = row.children[heads.indexOf(column)].title;
      return Number(title.replace(/ bytes?$/, '').replaceAll(',', ''));
    }));
  }, [count, columns]);
}

const COLUMNS = ['Live bytes', 'Live', 'At peak', 'Total', 'Allocs'];
const numbersOf = (group) => [group.outstanding_bytes, group.outstanding_count, group.peak_bytes, group.total_bytes, group.total_count];

/** The table must hold what the shown command prints. Groups that are equal in what is sorted by may be in any order. */
async function tableIsCommand() {
  const report = await runShown(work, await shownCommand());
  const shown = await firstRows(15, COLUMNS);
  assert.ok(shown.length > 0, 'the table has rows');
  const printed = report.groups.slice(0, shown.length).map(numbersOf);
  const sorted = (rows) => rows.map((row) => row.join(' ')).sort();
  assert.equal(report.groups.length > 0, true);
  assert.deepEqual(sorted(shown), sorted(printed), `${report.action} by ${report.sort}`);
  return report;
}

test('the first picture has the totals that heapr report prints', async () => {
  const report = JSON.parse(await run(work, HEAPR, ['report', 'a.heapr', '--totals', '--format', 'json']));
  const cards = await page.locator('.total').evaluateAll((cards) => cards.map((card) => card.title));
  const number = (value) => value.toLocaleString('en');
  assert.ok(cards[0].startsWith(`${number(report.totals.peak_bytes)} bytes in ${number(report.totals.peak_count)} blocks at`), cards[0]);
  assert.ok(cards[1].startsWith(`${number(report.totals.outstanding_bytes)} bytes`), cards[1]);
  assert.ok(cards[2].startsWith(`${number(report.totals.alloc_bytes)} bytes in ${number(report.totals.alloc_count)} allocations`), cards[2]);
  assert.deepEqual(browser.errors, []);
});

test('the peak is one click, and the copied command gives the same stacks', async () => {
  await show('view=stacks');
  await page.click('.is-peak');
  await page.waitForSelector('.chip:has-text("live at the peak")');
  await page.click('.command-copy');
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(copied, /^heapr report .*a\.heapr.* --at peak/);
  assert.equal(copied, await shownCommand());
  await tableIsCommand();
});

test('a brushed range filters every table as the command says', async () => {
  await show('view=stacks&sort=st');
  const box = await page.locator('.timeline canvas').boundingBox();
  await page.mouse.move(box.x + 300, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 600, box.y + 60, { steps: 5 });
  await page.mouse.up();
  await page.waitForSelector('.chip:has-text("range")');
  await waitUntil(page, () => document.querySelector('.filter-row .command code')?.textContent.includes('--range'));
  for (const view of ['Stacks', 'Frames', 'Images', 'Threads']) {
    await page.click(`role=tab[name="${view}"]`);
    await waitUntil(page, (word) => document.querySelector('.filter-row .command code')?.textContent.includes(word), view === 'Threads' ? '--by-thread' : `--${view.toLowerCase()}`);
    assert.match(await shownCommand(), /--range \S+ \S+/);
    await tableIsCommand();
  }
  await page.keyboard.press('x');
  await page.waitForSelector('.chip', { state: 'detached' });
});

test('filters from the form, sorted by another column', async () => {
  await show('view=stacks');
  await page.keyboard.press('f');
  await page.fill('input[aria-label^="Size, at least"]', '32');
  await page.fill('input[aria-label^="Size, below"]', '1K');
  await page.keyboard.press('Tab');
  await page.waitForSelector('.chip:has-text("size")');
  await page.fill('.field:has-text("With frame") input', 'libjq.so.1!');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.chip:has-text("libjq")');
  await page.keyboard.press('Escape');
  await page.click('.cell button.sort:has-text("Allocs")');
  await waitUntil(page, () => /--stacks stc/.test(document.querySelector('.filter-row .command code')?.textContent ?? ''));
  const command = await shownCommand();
  assert.match(command, /--size 32 (1K|1024)/);
  assert.match(command, /--require-frames '?libjq\.so\.1!/);
  await tableIsCommand();
});

test('a filter that cannot be read is said, and the page goes on', async () => {
  await show('view=stacks&range=2s&range=1s');
  await page.waitForSelector('.filter-error');
  assert.match(await page.textContent('.filter-error'), /range|empty|1s/);
  browser.errors.length = 0;
  await page.keyboard.press('x');
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
});

test('a stack opens with its frames, a frame with its callers', async () => {
  await show('view=stacks');
  await page.click('.row[aria-rowindex="2"]');
  await page.waitForSelector('.stack-frames li');
  const names = await page.locator('.stack-frames .symbol').allTextContents();
  assert.ok(names.some((name) => name.includes('jv_')), names.join());
  assert.ok(names.some((name) => /main|start/.test(name)), names.join());
  await page.hover('.stack-frames li:nth-child(3)');
  await page.click('.stack-frames li:nth-child(3) button:has-text("callers")');
  await page.waitForSelector('.frame-self');
  assert.equal(await page.getAttribute('role=tab[name="Frames"]', 'aria-selected'), 'true');
  assert.ok((await page.locator('.neighbours').first().locator('li button').count()) > 0, 'callers');
});

test('the table is searched', async () => {
  await show('view=frames');
  await page.fill('.search', 'jv_parse');
  await waitUntil(page, () => location.hash.includes('match=jv_parse'));
  await waitUntil(page, () => !document.querySelector('.table.is-old'));
  const names = await page.locator('.rows-block .row .symbol').allTextContents();
  for (const name of names) assert.match(name, /jv_parse/i);
});

test('the flame graph holds what the tree of the command holds', async () => {
  await show('view=flame&value=total_bytes');
  const command = await shownCommand();
  assert.match(command, /--invert st/);
  await page.waitForSelector('.flame canvas');
  const total = await page.getAttribute('.view-tools .quiet[title$=bytes]', 'title');
  const report = await runShown(work, command);
  const whole = JSON.parse(await run(work, HEAPR, ['report', 'a.heapr', '--totals', '--format', 'json'])).totals.alloc_bytes;
  assert.equal(Number(total.replace(' bytes', '').replaceAll(',', '')), whole);
  const root = report.sections[0].nodes.find((node) => node.depth === 0);
  await page.locator('.flame canvas').focus();
  await page.keyboard.press('ArrowUp');
  await page.waitForSelector('.selection');
  assert.ok((await page.textContent('.selection strong')).length > 0 && root.total_bytes > 0);
  await page.fill('.view-tools .search', 'jv_');
  await page.waitForSelector('.view-tools :text("match")');
  await page.keyboard.press('Escape');
});

test('histograms filter by a click', async () => {
  await show('view=histograms');
  await page.locator('.bars button').nth(3).click();
  await page.waitForSelector('.chip:has-text("size")');
  await waitUntil(page, () => document.querySelector('.filter-row .command code')?.textContent.includes('--size'));
});

test('types against the range add up and filter the other views', async () => {
  await show('view=types&range=0&range=10s');
  await page.waitForSelector('.type-card');
  assert.equal(await page.locator('.type-card').count(), 4);
  await page.locator('.type-card').first().locator('button:has-text("Stacks")').click();
  await waitUntil(page, () => document.querySelector('.filter-row .command code')?.textContent.includes('--type aifi'));
  await tableIsCommand();
});

test('leaks are what is outstanding at the end', async () => {
  await show('view=leaks');
  const report = await runShown(work, await shownCommand());
  await page.waitForSelector('.rows-block .row, .table .empty');
  assert.equal(report.groups.some((group) => group.outstanding_bytes > 0), (await page.locator('.rows-block .row').count()) > 0);
});

test('two files are compared; the copied command gives the same', async () => {
  await show('file=1&view=compare&before=0&sort=st');
  const command = await shownCommand();
  assert.match(command, /^heapr diff .*a\.heapr .*b\.heapr/);
  const printed = await run(work, command.replace(/^heapr /, `'${HEAPR}' `), [], { shell: true });
  const rows = await page.locator('.rows-block .row').evaluateAll((rows) => rows.map((row) => row.children[0].textContent));
  assert.ok(rows.length > 0);
  const first = rows.find((text) => text.startsWith('+'));
  assert.ok(first === undefined || printed.includes(first), `${first} is in\n${printed}`);
  await page.click('.switch button:has-text("Flame graph")');
  await page.waitForSelector('.flame canvas');
});

test('a broken file is said and does not harm the others', async () => {
  await page.goto('about:blank');
  await page.goto(`${origin}/#file=2`);
  await page.waitForSelector('.message.is-error');
  assert.match(await page.textContent('.message.is-error'), /broken\.heapr/);
});

test('without the token the page says what to do', async () => {
  const other = await openBrowser();
  try {
    await other.page.goto(`${origin}/`);
    await other.page.waitForSelector('.message.is-error');
    assert.match(await other.page.textContent('.message.is-error'), /open the address that heapr view printed/);
  } finally {
    await other.close();
  }
});

test('a file that is replaced is said, and opened again at a click', async () => {
  await show('view=stacks');
  copyFileSync(join(work.folder, 'b.heapr'), join(work.folder, 'a.heapr'));
  await page.waitForSelector('.message:has-text("Open again")');
  await page.click('button:has-text("Open again")');
  await page.waitForSelector('.message:has-text("Open again")', { state: 'detached' });
  await tableIsCommand();
});
