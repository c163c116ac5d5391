// Use of a trace on the page, on the real server: every number equals that of the command line that
// the page shows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openBrowser, waitUntil } from './browser.mjs';
import { HEAPR, run, runShown } from './heapr.mjs';
import { viewed } from './viewed.mjs';

const json = (count) => JSON.stringify(Array.from({ length: count }, (_, id) => ({ id, name: `item ${id}`, list: [id, id + 1, 'x'.repeat(id % 90)] })));
const shown = viewed(async (work) => {
  writeFileSync(join(work.folder, 'a.json'), json(6000));
  writeFileSync(join(work.folder, 'b.json'), json(9000));
  for (const name of ['a', 'b']) await run(work, HEAPR, ['run', '-o', `${name}.heapr`, '--', 'jq', '-c', 'map(.list) | flatten | length', `${name}.json`]);
  writeFileSync(join(work.folder, 'broken.heapr'), 'GIF89a');
  writeFileSync(join(work.folder, 'cache.py'), 'def features(size):\n    return bytearray(size)\nkept = [features(5000 + number) for number in range(300)]\n');
  await run(work, HEAPR, ['run', '-o', 'python.heapr', '--', '/usr/bin/python3', 'cache.py']);
  return ['a.heapr', 'b.heapr', 'broken.heapr', 'python.heapr'];
});
const { show, shownCommand } = shown;

/** Returns the exact numbers of the table's first rows, by column. */
async function firstRows(count, columns) {
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  await waitUntil(shown.page, () => !document.querySelector('.table.is-old') && !document.querySelector('.is-waiting'));
  return shown.page.evaluate(([count, columns]) => {
    const heads = [...document.querySelectorAll('.table [role=columnheader]')].map((head) => head.textContent.replace(/ [▾▴]$/, ''));
    return [...document.querySelectorAll('.rows-block .row')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).slice(0, count).map((row) => columns.map((column) => {
      const title = row.children[heads.indexOf(column)].title;
      return Number(title.replace(/ bytes?$/, '').replaceAll(',', ''));
    }));
  }, [count, columns]);
}

const COLUMNS = ['Live bytes', 'Live', 'At peak', 'Total', 'Allocs'];
const numbersOf = (group) => [group.outstanding_bytes, group.outstanding_count, group.peak_bytes, group.total_bytes, group.total_count];

/**
 * Checks that the table holds what the shown command prints. Groups that are equal in the sorted
 * column may be in any order.
 */
async function tableIsCommand() {
  const report = await runShown(shown.work, await shownCommand());
  const seen = await firstRows(15, COLUMNS);
  assert.ok(seen.length > 0, 'the table has rows');
  const printed = report.groups.slice(0, seen.length).map(numbersOf);
  const sorted = (rows) => rows.map((row) => row.join(' ')).sort();
  assert.equal(report.groups.length > 0, true);
  assert.deepEqual(sorted(seen), sorted(printed), `${report.action} by ${report.sort}`);
  return report;
}

test('the first picture has the totals that heapr report prints', async () => {
  const report = JSON.parse(await run(shown.work, HEAPR, ['report', 'a.heapr', '--totals', '--format', 'json']));
  const cards = await shown.page.locator('.total').evaluateAll((cards) => cards.map((card) => card.title));
  const number = (value) => value.toLocaleString('en');
  assert.ok(cards[0].startsWith(`${number(report.totals.peak_bytes)} bytes in ${number(report.totals.peak_count)} blocks at`), cards[0]);
  assert.ok(cards[1].startsWith(`${number(report.totals.outstanding_bytes)} bytes`), cards[1]);
  assert.ok(cards[2].startsWith(`${number(report.totals.alloc_bytes)} bytes in ${number(report.totals.alloc_count)} allocations`), cards[2]);
  assert.deepEqual(shown.browser.errors, []);
});

test('what is resident is shown by class beside what is live', async () => {
  await show('chart=resident');
  await shown.page.waitForSelector('.legend:has-text("live blocks")');
  const names = await shown.page.locator('.legend li').allTextContents();
  assert.deepEqual(names, ['live blocks', 'without a file, not live', 'files', 'shared memory']);
  assert.deepEqual(shown.browser.errors, []);
});

test('the peak is one click, and the copied command gives the same stacks', async () => {
  await show('view=stacks');
  await shown.page.click('.is-peak');
  await shown.page.waitForSelector('.chip:has-text("live at the peak")');
  await waitUntil(shown.page, () => document.querySelector('.filter-row .command code')?.textContent.includes('--at peak'));
  await shown.page.click('.command-copy');
  const copied = await shown.page.evaluate(() => navigator.clipboard.readText());
  assert.match(copied, /^heapr report .*a\.heapr.* --at peak/);
  assert.equal(copied, await shownCommand());
  await tableIsCommand();
});

test('a brushed range filters every table as the command says', async () => {
  await show('view=stacks&sort=st');
  const box = await shown.page.locator('.timeline canvas').boundingBox();
  // Most of the time: on a busy machine the program may have waited for long.
  await shown.page.mouse.move(box.x + box.width * 0.15, box.y + 60);
  await shown.page.mouse.down();
  await shown.page.mouse.move(box.x + box.width * 0.9, box.y + 60, { steps: 5 });
  await shown.page.mouse.up();
  await shown.page.waitForSelector('.chip:has-text("range")');
  await waitUntil(shown.page, () => document.querySelector('.filter-row .command code')?.textContent.includes('--range'));
  for (const view of ['Stacks', 'Frames', 'Images', 'Threads']) {
    await shown.page.click(`role=tab[name="${view}"]`);
    await waitUntil(shown.page, (word) => document.querySelector('.filter-row .command code')?.textContent.includes(word), view === 'Threads' ? '--by-thread' : `--${view.toLowerCase()}`);
    assert.match(await shownCommand(), /--range \S+ \S+/);
    await tableIsCommand();
  }
  await shown.page.keyboard.press('x');
  await shown.page.waitForSelector('.chip', { state: 'detached' });
});

test('two browsers at once get each their own answers', async () => {
  const other = await openBrowser();
  const rows = async (page, hash) => {
    await page.goto('about:blank');
    await page.goto(`${shown.origin}/#${hash}`);
    await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
    await waitUntil(page, () => !document.querySelector('.table.is-old') && !document.querySelector('.is-waiting'));
    return page.locator('.rows-block').innerText();
  };
  const all = async (page, hashes) => {
    const seen = new Map();
    for (const hash of hashes) seen.set(hash, await rows(page, hash));
    return seen;
  };
  try {
    await other.page.goto(shown.server.url);
    await other.page.waitForSelector('.tabs');
    const hashes = ['view=stacks&sort=st', 'view=frames&sort=stc', 'view=stacks&sort=peak', 'view=images&sort=st'];
    const alone = await all(shown.page, hashes);
    assert.equal(new Set(alone.values()).size, hashes.length, 'the views differ');
    const [one, two] = await Promise.all([all(shown.page, hashes), all(other.page, hashes.toReversed())]);
    for (const hash of hashes) {
      assert.equal(one.get(hash), alone.get(hash), hash);
      assert.equal(two.get(hash), alone.get(hash), `${hash}, in the other`);
    }
    assert.deepEqual(other.errors, []);
  } finally {
    await other.close();
  }
});

test('filters from the form, sorted by another column', async () => {
  await show('view=stacks');
  await shown.page.keyboard.press('f');
  await shown.page.fill('input[aria-label^="Size, at least"]', '32');
  await shown.page.fill('input[aria-label^="Size, below"]', '1K');
  await shown.page.keyboard.press('Tab');
  await shown.page.waitForSelector('.chip:has-text("size")');
  await shown.page.fill('.field:has-text("With frame") input', 'libjq.so.1!');
  await shown.page.keyboard.press('Enter');
  await shown.page.waitForSelector('.chip:has-text("libjq")');
  await shown.page.keyboard.press('Escape');
  await shown.page.click('.cell button.sort:has-text("Allocs")');
  await waitUntil(shown.page, () => /--stacks stc/.test(document.querySelector('.filter-row .command code')?.textContent ?? ''));
  const command = await shownCommand();
  assert.match(command, /--size 32 (1K|1024)/);
  assert.match(command, /--require-frames '?libjq\.so\.1!/);
  await tableIsCommand();
});

test('a click in the legend leaves nothing but what was counted for the name', async () => {
  await show('view=stacks&by=image');
  const legend = () => shown.page.locator('.legend button');
  await waitUntil(shown.page, () => document.querySelectorAll('.legend button').length > 1);
  const name = (await legend().first().textContent()).trim();
  await legend().first().click();
  await shown.page.waitForSelector('.chip:has-text("only of")');
  await waitUntil(shown.page, () => document.querySelectorAll('.legend button').length === 1);
  assert.equal((await legend().first().textContent()).trim(), name);
  assert.equal(await shown.page.locator('.legend li:has-text("rest")').count(), 0);
  await tableIsCommand();
});

test('a cull list is a file that the page reads', async () => {
  await show('view=stacks');
  await shown.page.keyboard.press('f');
  await shown.page.setInputFiles('.filter-form input[type=file]', { name: 'mine.txt', mimeType: 'text/plain', buffer: Buffer.from('# of my own\njv_string_sized\n\nlibjq.so.1!jv_mem_alloc\n') });
  await shown.page.waitForSelector('.chip:has-text("libjq.so.1!jv_mem_alloc")');
  await shown.page.keyboard.press('Escape');
  assert.match(await shownCommand(), /--cull-frames '?jv_string_sized'? --cull-frames '?libjq\.so\.1!jv_mem_alloc/);
  await tableIsCommand();
});

test('a filter that cannot be read is said, and the page goes on', async () => {
  await show('view=stacks&range=2s&range=1s');
  await shown.page.waitForSelector('.filter-error');
  assert.match(await shown.page.textContent('.filter-error'), /range|empty|1s/);
  shown.browser.errors.length = 0;
  await shown.page.keyboard.press('x');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
});

test('a stack opens with its frames, a frame with its callers', async () => {
  await show('view=stacks');
  await shown.page.click('.row[aria-rowindex="2"]');
  await shown.page.waitForSelector('.stack-frames li');
  const names = await shown.page.locator('.stack-frames .symbol').allTextContents();
  assert.ok(names.some((name) => name.includes('jv_')), names.join());
  assert.ok(names.some((name) => /main|start/.test(name)), names.join());
  await shown.page.hover('.stack-frames li:nth-child(3)');
  await shown.page.click('.stack-frames li:nth-child(3) button:has-text("callers")');
  await shown.page.waitForSelector('.frame-self');
  assert.equal(await shown.page.getAttribute('role=tab[name="Functions"]', 'aria-selected'), 'true');
  assert.ok((await shown.page.locator('.neighbours').first().locator('li button').count()) > 0, 'callers');
});

test('the table is searched', async () => {
  await show('view=frames');
  await shown.page.fill('.search', 'jv_parse');
  await waitUntil(shown.page, () => location.hash.includes('match=jv_parse'));
  await waitUntil(shown.page, () => !document.querySelector('.table.is-old'));
  const names = await shown.page.locator('.rows-block .row .symbol').allTextContents();
  for (const name of names) assert.match(name, /jv_parse/i);
});

test('the flame graph holds what the tree of the command holds', async () => {
  await show('view=flame&value=total_bytes&libraries=1');
  const command = await shownCommand();
  assert.match(command, /--invert st/);
  await shown.page.waitForSelector('.flame canvas');
  const total = await shown.page.getAttribute('.view-tools .quiet[title$=bytes]', 'title');
  const report = await runShown(shown.work, command);
  const whole = JSON.parse(await run(shown.work, HEAPR, ['report', 'a.heapr', '--totals', '--format', 'json'])).totals.alloc_bytes;
  assert.equal(Number(total.replace(' bytes', '').replaceAll(',', '')), whole);
  const root = report.sections[0].nodes.find((node) => node.depth === 0);
  await shown.page.locator('.flame canvas').focus();
  await shown.page.keyboard.press('ArrowUp');
  await shown.page.waitForSelector('.selection');
  assert.ok((await shown.page.textContent('.selection strong')).length > 0 && root.total_bytes > 0);
  await shown.page.fill('.view-tools .search', 'jv_');
  await shown.page.waitForSelector('.view-tools :text("match")');
  await shown.page.keyboard.press('Escape');
});

test('histograms filter by a click', async () => {
  await show('view=histograms');
  await shown.page.locator('.bars button').nth(3).click();
  await shown.page.waitForSelector('.chip:has-text("size")');
  await waitUntil(shown.page, () => document.querySelector('.filter-row .command code')?.textContent.includes('--size'));
});

test('types against the range add up and filter the other views', async () => {
  await show('view=types&range=0&range=10s');
  await shown.page.waitForSelector('.type-card');
  assert.equal(await shown.page.locator('.type-card').count(), 4);
  await shown.page.locator('.type-card').first().locator('button:has-text("Stacks")').click();
  await waitUntil(shown.page, () => document.querySelector('.filter-row .command code')?.textContent.includes('--type aifi'));
  await tableIsCommand();
});

test('leaks are what is outstanding at the end', async () => {
  await show('view=leaks');
  const report = await runShown(shown.work, await shownCommand());
  await shown.page.waitForSelector('.rows-block .row, .table .empty');
  assert.equal(report.groups.some((group) => group.outstanding_bytes > 0), (await shown.page.locator('.rows-block .row').count()) > 0);
});

test('two files are compared; the copied command gives the same', async () => {
  await show('file=1&view=compare&before=0&group=stacks&sort=st');
  const command = await shownCommand();
  assert.match(command, /^heapr diff .*a\.heapr .*b\.heapr/);
  const printed = await run(shown.work, command.replace(/^heapr /, `'${HEAPR}' `), [], { shell: true });
  const rows = await shown.page.locator('.rows-block .row').evaluateAll((rows) => rows.map((row) => row.children[0].textContent));
  assert.ok(rows.length > 0);
  assert.ok(rows.every((text) => /^[+−-]/.test(text)), `each row differs: ${rows}`);
  const first = rows.find((text) => text.startsWith('+'));
  assert.ok(first === undefined || printed.includes(first), `${first} is in\n${printed}`);
  await shown.page.click('.switch button:has-text("Flame graph")');
  await shown.page.waitForSelector('.flame canvas');
  await shown.page.selectOption('select[aria-label="Flame graph counts"]', 'total_bytes');
  const isCalm = () => location.hash.includes('total_bytes') && ![...document.querySelectorAll('[role=status]')].some((element) => element.textContent.includes('loading'));
  await waitUntil(shown.page, isCalm);
  await shown.page.locator('.flame canvas').focus();
  // Goes up the stack to a function with a name.
  for (let step = 0; step < 8 && (await shown.page.locator('.selection button:has-text("Focus")').count()) === 0; step += 1) {
    await shown.page.keyboard.press('ArrowUp');
    await shown.page.waitForTimeout(100);
  }
  await shown.page.click('.selection button:has-text("Focus")');
  await shown.page.waitForSelector('.chip:has-text("focused on one frame")');
  await waitUntil(shown.page, isCalm);
  assert.equal(await shown.page.locator('.message.is-error').count(), 0);
});

test('which frames of a language are shown is a switch in the address, and every view follows', async () => {
  const pressed = () => shown.page.locator('.languages [aria-pressed=true]').textContent();
  await show('file=0&view=images');
  await shown.page.waitForSelector('.filter-row .command code');
  assert.equal(await shown.page.locator('.languages').count(), 0, 'a program in C has no such frames');
  await show('file=3&view=images');
  await shown.page.waitForSelector('.languages:has-text("Python")');
  assert.equal(await pressed(), 'mixed');
  await tableIsCommand();
  for (const [frames, hasPython, hasInterpreter] of [['own', true, false], ['native', false, true], ['mixed', true, true]]) {
    await show(`file=3&view=stacks&no_default_cull=1`);
    await shown.page.click(`.languages button:text-is("${frames}")`);
    await waitUntil(shown.page, (frames) => document.querySelector('.filter-row .command code')?.textContent.includes(`--lang-frames ${frames}`), frames);
    assert.ok(new URL(shown.page.url()).hash.includes(`lang_frames=${frames}`), shown.page.url());
    const report = await tableIsCommand();
    const modules = new Set(report.groups.flatMap((group) => group.frames.map((frame) => (frame.module ?? '').split('/').at(-1))));
    assert.equal(modules.has('py'), hasPython, `${frames}: ${[...modules]}`);
    assert.equal([...modules].some((module) => /python/.test(module)), hasInterpreter, `${frames}: ${[...modules]}`);
    for (const view of ['flame', 'functions']) {
      await show(`file=3&view=${view}&no_default_cull=1&value=total_bytes&lang_frames=${frames}`);
      assert.equal(await pressed(), frames);
      assert.match(await shownCommand(), new RegExp(`--lang-frames ${frames}`), view);
    }
    await show(`file=3&view=functions&no_default_cull=1&sort=st&match=features&lang_frames=${frames}`);
    await waitUntil(shown.page, () => document.querySelector('.rows-block .row, .empty') && !document.querySelector('.is-waiting'));
    assert.equal(await shown.page.locator('.rows-block .row:has-text("features")').count() > 0, hasPython, frames);
  }
  assert.deepEqual(shown.browser.errors, []);
});

test('a broken file is said and does not harm the others', async () => {
  await shown.page.goto('about:blank');
  await shown.page.goto(`${shown.origin}/#file=2`);
  await shown.page.waitForSelector('.message.is-error');
  assert.match(await shown.page.textContent('.message.is-error'), /broken\.heapr/);
});

test('without the token the page says what to do', async () => {
  const other = await openBrowser();
  try {
    await other.page.goto(`${shown.origin}/`);
    await other.page.waitForSelector('.message.is-error');
    assert.match(await other.page.textContent('.message.is-error'), /open the address that heapr view printed/);
  } finally {
    await other.close();
  }
});

test('a file that is replaced is said, and opened again at a click', async () => {
  await show('view=stacks');
  copyFileSync(join(shown.work.folder, 'b.heapr'), join(shown.work.folder, 'a.heapr'));
  await shown.page.waitForSelector('.message:has-text("Open again")');
  await shown.page.click('button:has-text("Open again")');
  await shown.page.waitForSelector('.message:has-text("Open again")', { state: 'detached' });
  await tableIsCommand();
});
