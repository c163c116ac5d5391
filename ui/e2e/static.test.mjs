// The page of `heapr view --static`: it shows from a file, without a server, what heapr report
// prints.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { openBrowser, waitUntil } from './browser.mjs';
import { HEAPR, run, workFolder } from './heapr.mjs';

const GROW = 'import time\nkept = []\n\n\ndef remember(number):\n    kept.append(bytearray(3000 + number))\n    bytes(5000)\n\n\nfor number in range(2500):\n    remember(number)\n    time.sleep(0.001)\n';
let work, browser, page, address;
before(async () => {
  work = workFolder();
  writeFileSync(join(work.folder, 'a.json'), JSON.stringify(Array.from({ length: 4000 }, (_, id) => ({ id, name: `item ${id}`, list: [id, '</script><script>window.markupRan=1</script>'] }))));
  await run(work, HEAPR, ['run', '--quiet', '-o', 'a.heapr', '--', 'jq', '-c', 'map(.list) | flatten | length', 'a.json']);
  await run(work, process.execPath, ['-e', "globalThis.kept = Array.from({ length: 2000 }, (_, id) => ({ id, text: `</script><img src=x onerror=window.markupRan=1>${id}` })); require('v8').writeHeapSnapshot('a.heapsnapshot');"]);
  writeFileSync(join(work.folder, 'grow.py'), GROW);
  await run(work, HEAPR, ['run', '--quiet', '-o', 'grow.heapr', '--', '/usr/bin/python3', 'grow.py']);
  await run(work, HEAPR, ['view', '--static', 'out.html', '--sources', '--note', '1us here it begins', 'a.heapr', 'a.heapsnapshot', 'grow.heapr']);
  address = pathToFileURL(join(work.folder, 'out.html')).href;
  browser = await openBrowser();
  page = browser.page;
}, { timeout: 500_000 });
after(async () => {
  await browser?.close();
  work?.remove();
});

async function show(hash) {
  await page.goto('about:blank');
  await page.goto(`${address}#${hash}`);
  await page.waitForSelector('.tabs');
}

test('a page without a server shows the totals and tables that heapr report prints', async () => {
  const report = JSON.parse(await run(work, HEAPR, ['report', 'a.heapr', '--stacks', 'st', '--format', 'json']));
  await show('');
  await page.waitForSelector('.ranking .amount');
  const cards = await page.locator('.total').evaluateAll((cards) => cards.map((card) => card.title));
  assert.ok(cards[0].startsWith(`${report.totals.peak_bytes.toLocaleString('en')} bytes in`), cards[0]);
  await page.waitForSelector('.message:has-text("--static")');
  await show('view=stacks&sort=st');
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"] .cell:nth-child(4)');
  assert.equal(await page.getAttribute('.rows-block .row[aria-rowindex="2"] .cell:nth-child(4)', 'title'), `${report.groups[0].total_bytes.toLocaleString('en')} bytes`);
  await page.locator('.row[aria-rowindex="2"]').click();
  await page.waitForSelector('.stack-frames li');
  assert.deepEqual(browser.errors, []);
});

test('its pictures are drawn, and markup in a trace or snapshot stays text', async () => {
  for (const [hash, sign] of [
    ['view=flame&value=total_bytes', '.flame canvas'], ['view=frames', '.rows-block .row[aria-rowindex="2"]'], ['view=histograms', '.bars .bar'], ['view=leaks', '.table'],
    ['file=1', '.class-name'], ['file=1&view=statistics', '.ring'], ['file=1&view=treemap', '.treemap canvas'], ['file=1&view=lists&list=strings', '.rows-block .row'], ['file=1&view=dominators', '.heap-name'],
  ]) {
    await show(hash);
    await page.waitForSelector(sign);
    assert.equal(await page.locator('.message.is-error').count(), 0, `${hash}: ${await page.locator('.message.is-error').allTextContents()}`);
  }
  assert.equal(await page.evaluate(() => window.markupRan), undefined);
  assert.deepEqual(browser.errors, []);
});

test('its tables are sorted by any column, both ways', async () => {
  const column = async (at) => (await page.locator('.rows-block .row').evaluateAll((rows, at) => rows.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => row.children[at]?.title ?? ''), at)).map((title) => Number(title.replace(/ bytes?$|^@/g, '').replaceAll(',', '')));
  const isSorted = (values, sign) => values.length > 1 && values.every((value, at) => at === 0 || (values[at - 1] - value) * sign >= 0);
  for (const hash of ['view=stacks', 'view=frames', 'view=images', 'file=1', 'file=1&view=lists&list=strings']) {
    await show(hash);
    await page.waitForSelector('.rows-block .row[aria-rowindex="2"] .cell:nth-child(3)');
    const count = await page.locator('.row.is-head .cell').count();
    for (let at = 0; at < count; at += 1) {
      const head = page.locator('.row.is-head .cell').nth(at);
      if (!(await head.locator('button.sort').count()) || !/is-number/.test(await head.getAttribute('class'))) continue;
      const title = await head.textContent();
      if (/distance/i.test(title)) continue;
      // The first click on a sorted column reverses the order.
      for (let click = 0; click < 2; click += 1) {
        await head.locator('button.sort').click();
        await page.waitForTimeout(60);
        const sign = (await head.getAttribute('aria-sort')) === 'descending' ? 1 : -1;
        assert.equal(await page.locator('.message.is-error').count(), 0, `${hash} by ${title}`);
        assert.ok(isSorted(await column(at), sign), `${hash} by ${title}: ${(await column(at)).slice(0, 9)}`);
      }
    }
  }
  assert.deepEqual(browser.errors, []);
});

test('every control leads to what is in the page, or says that it is not', async () => {
  const fails = async () => (await page.locator('.message.is-error:visible, .filter-error:visible').allTextContents()).join();
  await show('');
  await page.waitForSelector('.verdict, .finding');
  const buttons = await page.locator('.finding button').evaluateAll((all) => all.map((button) => button.textContent));
  for (let at = 0; at < buttons.length; at += 1) {
    if (!/Flame graph|Stacks/.test(buttons[at])) continue;
    await show('');
    await page.locator('.finding button').nth(at).click();
    // On a busy machine there was no time for all answers, and the page says so.
    await page.waitForSelector('.flame canvas, .rows-block .row, .empty, .filter-refused');
    assert.equal(await fails(), '', buttons[at]);
  }
  await show('view=functions');
  await page.locator('.rows-block .row').first().click();
  await page.waitForSelector('.frame-self');
  assert.equal(await fails(), '', 'callers and callees');
  for (const button of await page.locator('.legend button:not([disabled])').all()) {
    await button.click();
    assert.equal(await fails(), '', 'legend');
    await page.keyboard.press('x');
  }
  await show('view=histograms');
  await page.locator('.bars button').nth(1).click();
  await page.waitForSelector('.filter-refused:has-text("no answers for that filter")');
  // Histograms of a range are not in the page; tables are.
  await show('view=stacks&sort=so');
  await page.waitForSelector('.rows-block .row');
  const box = await page.locator('.timeline canvas').boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 50, { steps: 4 });
  await page.mouse.up();
  await page.waitForSelector('.chip:has-text("range")');
  assert.equal(await fails(), '', 'brush');
  await show('view=flame&value=total_bytes');
  await page.locator('.flame canvas').focus();
  await page.keyboard.press('ArrowUp');
  for (const name of ['Focus', 'Only stacks with it']) {
    const button = page.locator(`.selection button:has-text("${name}")`);
    if (await button.count()) await button.click();
    assert.equal(await fails(), '', name);
  }
  assert.deepEqual(browser.errors, []);
});

test('the objects of a suspect and all that retains them are in the page', async () => {
  await show('file=1&view=suspects');
  await page.waitForSelector('button:has-text("Show object")');
  await page.click('button:has-text("Show object")');
  await page.waitForSelector('.object-pane .object-title');
  await page.waitForTimeout(200);
  assert.deepEqual(await page.locator('.message.is-error:visible').allTextContents(), []);
  for (let step = 0; step < (await page.locator('.path-step').count()); step += 1) {
    await page.locator('.path-step').nth(step).click();
    assert.deepEqual(await page.locator('.message.is-error:visible').allTextContents(), [], `step ${step}`);
  }
  assert.deepEqual(browser.errors, []);
});

test('what is not recorded is said', async () => {
  await show('view=stacks&size=1K&size=2K');
  await page.waitForSelector('.filter-error');
  assert.match(await page.textContent('.filter-error'), /not in the page/);
  // The message appears once, not once for each view.
  assert.equal(await page.locator('.message.is-error:visible').count(), 0);
});

test('a brushed range and a frame are counted without a server as heapr report counts them', async () => {
  await show('view=stacks');
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  const box = await page.locator('.timeline canvas').boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + 50, { steps: 4 });
  await page.mouse.up();
  await page.waitForSelector('.chip:has-text("range")');
  const counted = async (view) => {
    await page.evaluate((view) => { location.hash = location.hash.replace(/view=\w+/, `view=${view}`); }, view);
    await waitUntil(page, (view) => document.querySelector('.filter-row .command code')?.textContent.includes(`--${view} so --range`), view);
    const command = await page.textContent('.filter-row .command code');
    const report = JSON.parse(await run(work, `${command.replace(/^heapr /, `'${HEAPR}' `)} --format json`, [], { shell: true }));
    const rows = await page.locator('.rows-block .row').evaluateAll((rows) => rows.map((row) => [...row.children].slice(1, 3).map((cell) => Number((cell.title || cell.textContent).replace(/ bytes?$/, '').replaceAll(',', ''))).join(' ')));
    const printed = report.groups.map((group) => `${group.outstanding_bytes} ${group.outstanding_count}`);
    assert.ok(rows.length > 0 && rows.every((row) => printed.includes(row)), `${command}: ${rows.slice(0, 4)} of ${printed.slice(0, 4)}`);
    assert.equal(Math.max(...rows.map((row) => Number(row.split(' ')[0]))), report.groups[0].outstanding_bytes);
  };
  await counted('stacks');
  await counted('frames');
  await show('view=stacks&require_frames=libjq*!*');
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"], .empty');
  assert.equal(await page.locator('.message.is-error:visible').count(), 0);
  assert.deepEqual(browser.errors, []);
});

test('callers, flame graphs and tables in any order are counted without a server as heapr counts them', async () => {
  const numbers = (text) => Number(text.replace(/ bytes?$/, '').replaceAll(',', ''));
  // Tables: each order of stacks, which the page has not in all orders.
  for (const sort of ['st', 'stc', 'peak', 'temporary']) {
    await show(`view=stacks&sort=${sort}`);
    await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
    const command = await page.textContent('.filter-row .command code');
    assert.ok(command.includes(`--stacks ${sort}`), command);
    const report = JSON.parse(await run(work, `${command.replace(/^heapr /, `'${HEAPR}' `)} --format json`, [], { shell: true }));
    const printed = report.groups.map((group) => `${group.outstanding_bytes} ${group.outstanding_count}`);
    const rows = await page.locator('.rows-block .row').evaluateAll((rows) => rows.slice(0, 8).map((row) => [...row.children].slice(1, 3).map((cell) => cell.title || cell.textContent)));
    assert.ok(rows.length > 0 && rows.every((row) => printed.includes(row.map(numbers).join(' '))), `${command}: ${rows}`);
  }
  // Flame graphs of values and directions that are not recorded.
  for (const [value, direction] of [['peak_bytes', 'bottom-up'], ['temporary_count', 'top-down'], ['total_bytes', 'bottom-up']]) {
    await show(`view=flame&value=${value}&direction=${direction}`);
    await page.waitForSelector('.flame canvas, .flame-view canvas, canvas');
    assert.equal(await page.locator('.message.is-error:visible').count(), 0, `${value} ${direction}`);
  }
  assert.deepEqual(browser.errors, []);
});

test('the story of a finding is told without a server: lines with bytes, source, blocks', async () => {
  await show('file=2&finding=0');
  await page.waitForSelector('.story .examples li');
  assert.match(await page.textContent('.story .sentence'), /remember \(grow\.py:6\)/);
  const lines = await page.locator('.story .source.has-sums > div').evaluateAll((lines) => lines.filter((line) => line.title !== '').map((line) => line.textContent));
  assert.ok(lines.some((line) => /MiB.*kept\.append/.test(line)), lines.join(' | '));
  assert.ok((await page.locator('.story .source.has-sums > div').count()) > 7, 'more than the lines of a card');
  assert.match(await page.textContent('.story .examples'), /remember/);
  assert.deepEqual(browser.errors, []);
});

test('a note of the author is pinned, and an anonymous page has no folder', async () => {
  await page.goto('about:blank');
  await page.goto(address);
  await page.waitForSelector('.notes li:has-text("here it begins")');
  await run(work, HEAPR, ['view', '--static', 'anonymous.html', '--anonymous', '--max-size', '700K', 'a.heapr']);
  const text = readFileSync(join(work.folder, 'anonymous.html'), 'utf8');
  const answers = gunzipSync(Buffer.from(/data-encoding="gzip\+base64">([^<]*)</.exec(text)[1], 'base64')).toString();
  assert.ok(!answers.includes(work.folder) && !answers.includes('flatten | length') && answers.includes('…/a.heapr'), 'folders, or the command line');
});

test('an anonymous page tells the story, too, and its filters choose what they name', { timeout: 120_000 }, async () => {
  // A function whose name has folders, as those of generated code have.
  const named = "remember.__code__ = remember.__code__.replace(co_name='/srv/secret/kept.py')\nif hasattr(remember.__code__, 'co_qualname'): remember.__code__ = remember.__code__.replace(co_qualname='/srv/secret/kept.py')\n";
  writeFileSync(join(work.folder, 'secret.py'), GROW.replace('\n\nfor ', `\n\n${named}for `));
  await run(work, HEAPR, ['run', '--quiet', '-o', 'secret.heapr', '--', '/usr/bin/python3', 'secret.py']);
  await run(work, HEAPR, ['view', '--static', 'secret.html', '--anonymous', 'secret.heapr']);
  const text = readFileSync(join(work.folder, 'secret.html'), 'utf8');
  const answers = JSON.parse(gunzipSync(Buffer.from(/data-encoding="gzip\+base64">([^<]*)</.exec(text)[1], 'base64')).toString());
  assert.ok(!JSON.stringify(answers).includes('/srv/secret'), 'folders');
  const { choices } = answers['/api/files'].static;
  assert.ok(choices.some(({ filter }) => filter.require_frames?.some((pattern) => pattern.includes('!…/kept.py'))), JSON.stringify(choices));
  assert.ok(choices.length > 1, JSON.stringify(answers['/api/files'].static));
  for (const { title, filter } of choices) {
    const report = answers[`/api/report {"by":"stacks","file":0,"filter":${JSON.stringify(Object.fromEntries(Object.entries(filter).sort()))},"sort":"so"}`];
    if (!report && Object.keys(filter).join() === 'require_frames') {
      // The page counts stacks with a frame from its sums.
      await page.goto('about:blank');
      await page.goto(`${pathToFileURL(join(work.folder, 'secret.html')).href}#view=stacks&${filter.require_frames.map((pattern) => `require_frames=${encodeURIComponent(pattern)}`).join('&')}`);
      await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
      continue;
    }
    assert.ok(report, `${title}: no answer for ${JSON.stringify(filter)}`);
    if (!filter.temporary) assert.ok(report.all.total_count > 0, `${title} chooses nothing`);
  }
  await page.goto('about:blank');
  await page.goto(`${pathToFileURL(join(work.folder, 'secret.html')).href}#finding=0`);
  await page.waitForSelector('.story .examples li');
  assert.match(await page.textContent('.story .line-sums'), /MiB line 6,/);
  assert.deepEqual(browser.errors, []);
});

test('the file is small enough to be attached to a report', () => {
  assert.ok(statSync(join(work.folder, 'out.html')).size < 16 * 2 ** 20);
});
