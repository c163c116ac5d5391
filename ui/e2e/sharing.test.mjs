// Sharing: a static page, pictures, Markdown and dropped files; also the call tree, and comparisons
// that open.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openBrowser, waitUntil } from './browser.mjs';
import { HEAPR, run, runShown } from './heapr.mjs';
import { viewed } from './viewed.mjs';

/** Program with a cache that grows and is freed at the end; `by`: size of an entry. */
const program = (by) => `
#include <map>
#include <string>
namespace shop {
struct SessionCache {
  std::map<int, std::string> all;
  __attribute__((noinline)) void remember(int i) { all.emplace(i, std::string(${by}, 'x')); }
};
__attribute__((noinline)) void serve(SessionCache& cache, int i) { std::string text(200, 'y'); if (i % 2 == 0) cache.remember(i + (int)text.size()); }
}
int main() { shop::SessionCache cache; for (int i = 0; i < 4000; i++) shop::serve(cache, i); return cache.all.empty(); }
`;

const shown = viewed(async (work) => {
  for (const [name, by] of [['shop-1.0', 300], ['shop-2.0', 500]]) {
    writeFileSync(join(work.folder, `${name}.cc`), program(by));
    await run(work, 'g++', ['-g', '-O1', '-o', name, `${name}.cc`]);
    await run(work, HEAPR, ['run', '-q', '-o', `${name}.heapr`, '--', `./${name}`]);
  }
  return ['shop-1.0.heapr'];
});
const { show } = shown;

/** Returns the file that a click saves. */
async function saved(click) {
  const [download] = await Promise.all([shown.page.waitForEvent('download'), click()]);
  const path = join(shown.work.folder, `saved-${download.suggestedFilename()}`);
  await download.saveAs(path);
  return path;
}

async function share(item) {
  await shown.page.click('.top-bar button:has-text("Share")');
  return shown.page.locator(`.popover-box button:has-text("${item}")`);
}

test('the call tree opens along the way that holds most, and has the amounts of the command', async () => {
  await show('view=tree&value=peak_bytes&libraries=1');
  await shown.page.waitForSelector('.rows-block .row:has-text("remember")');
  const tree = await runShown(shown.work, await shown.shownCommand());
  const flat = [];
  const walk = (nodes) => nodes.forEach((node) => { flat.push(node); walk(node.children ?? []); });
  walk(tree.sections[0].nodes);
  const of = (name) => flat.find((node) => JSON.stringify(node.frame ?? node.name ?? '').includes(name));
  const row = await shown.page.locator('.rows-block .row:has-text("SessionCache::remember")').first().locator('.cell').evaluateAll((cells) => cells.map((cell) => cell.title || cell.textContent));
  const printed = of('SessionCache::remember');
  if (printed) assert.ok(row.some((text) => text === `${(printed.peak_bytes ?? printed.amounts?.peak_bytes).toLocaleString('en')} bytes`), `${row} ${JSON.stringify(printed).slice(0, 300)}`);
  // Each line by itself, as in the command's tree.
  await shown.page.click('label:has-text("by line")');
  const lines = flat.filter((node) => /SessionCache::remember/.test(node.frame?.symbol ?? '')).map((node) => node.frame.line);
  assert.ok(lines.length > 0);
  for (const line of lines) await shown.page.waitForSelector(`.rows-block .row:has-text("remember(…) shop-1.0.cc:${line}")`);
  await shown.page.click('label:has-text("by line")');
  // Callers, from the allocating functions up.
  await shown.page.click('.switch button:has-text("Callers")');
  await shown.page.waitForSelector('.row.is-head:has-text("Who allocates")');
  await waitUntil(shown.page, () => document.querySelectorAll('.rows-block .row').length > 1);
  assert.deepEqual(shown.browser.errors, []);
});

test('a row of a comparison names the own function, and opens its stack, source and curve', async () => {
  await show('view=compare&group=stacks');
  // The default is from the start to the peak.
  await shown.page.waitForSelector('.rows-block .row .is-own');
  assert.match(await shown.shownCommand(), /^heapr diff .* --before-at 0 --after-at peak$/);
  const diff = await runShown(shown.work, await shown.shownCommand());
  const first = await shown.page.locator('.rows-block .row[aria-rowindex="2"] .cell').evaluateAll((cells) => cells.map((cell) => cell.title));
  assert.equal(first[2], `${diff.groups[0].after.outstanding_bytes.toLocaleString('en')} bytes`);
  assert.match(await shown.page.locator('.rows-block .row .is-own').first().textContent(), /SessionCache::remember/);
  await shown.page.locator('.rows-block .row[aria-rowindex="2"]').click();
  await shown.page.waitForSelector('.stack-frames .is-own details[open] .source .is-line');
  await shown.page.waitForSelector('.compared-curve .growth');
  assert.deepEqual(shown.browser.errors, []);
});

test('lines of functions have the amounts of the command, and their callers are lines', async () => {
  await show('view=functions&sort=peak&lines=1&match=remember');
  await shown.page.waitForSelector('.rows-block .row:has-text("shop-1.0.cc:")');
  const report = await runShown(shown.work, await shown.shownCommand());
  const printed = report.sections[0].functions.filter((row) => /SessionCache::remember/.test(row.frame.symbol ?? ''));
  assert.ok(printed.length > 0 && printed.every((row) => row.frame.line > 0));
  for (const { frame, inclusive } of printed) {
    const row = shown.page.locator(`.rows-block .row:has-text("shop-1.0.cc:${frame.line}")`).first();
    const cells = await row.locator('.cell').evaluateAll((all) => all.map((cell) => cell.title || cell.textContent));
    assert.ok(cells.includes(`${inclusive.peak_bytes.toLocaleString('en')} bytes`), `${cells}: ${inclusive.peak_bytes}`);
  }
  await shown.page.click('.rows-block .row:has-text("shop-1.0.cc:")');
  await shown.page.waitForSelector('.neighbours[aria-label=Callers] button:has-text("serve"):has-text("shop-1.0.cc:9")');
  assert.deepEqual(shown.browser.errors, []);
});

test('the timeline by stack names own functions, in one line; what no stack passes is said', async () => {
  await show('by=stack');
  await shown.page.waitForSelector('.legend button:has-text("SessionCache::remember(…) through")');
  const tops = await shown.page.locator('.legend li').evaluateAll((all) => all.map((item) => Math.round(item.getBoundingClientRect().top / 8)));
  assert.equal(new Set(tops).size, 1, tops.join());
  await show('view=flame&require_frames=nobody');
  await shown.page.waitForSelector('.empty:has-text("No allocation is left by the filters.")');
  assert.deepEqual(shown.browser.errors, []);
});

test('in forced colours the chosen tab and switch are told, and on paper the colours of the legend', async () => {
  await shown.page.emulateMedia({ forcedColors: 'active' });
  await show('view=flame&value=total_bytes&libraries=1');
  await shown.page.waitForSelector('.flame canvas');
  const style = (selector, name) => shown.page.locator(selector).first().evaluate((element, name) => getComputedStyle(element)[name], name);
  assert.notEqual(await style('.tabs [aria-selected=true]', 'borderBottomColor'), await style('.tabs [aria-selected=false]', 'borderBottomColor'));
  assert.notEqual(await style('.switch [aria-pressed=true]', 'backgroundColor'), await style('.switch [aria-pressed=false]', 'backgroundColor'));
  await shown.page.emulateMedia({ forcedColors: 'none', media: 'print' });
  assert.equal(await style('.legend .swatch', 'printColorAdjust'), 'exact');
  await shown.page.emulateMedia({ media: 'screen' });
});

test('matches of a search are walked with n and N', async () => {
  await show('view=flame&value=total_bytes&libraries=1&search=basic_string');
  await shown.page.waitForSelector('#match-next:not([disabled])');
  const said = () => shown.page.locator('.view-tools [role=status]').first().textContent();
  const count = Number(/(\d+) match/.exec(await said())[1]);
  assert.ok(count > 1, await said());
  await shown.page.keyboard.press('n');
  await waitUntil(shown.page, () => /^1 of /.test(document.querySelector('.view-tools [role=status]').textContent));
  const one = new URL(shown.page.url()).hash;
  await shown.page.keyboard.press('n');
  await waitUntil(shown.page, () => /^2 of /.test(document.querySelector('.view-tools [role=status]').textContent));
  assert.notEqual(new URL(shown.page.url()).hash, one);
  await shown.page.keyboard.press('Shift+N');
  await waitUntil(shown.page, () => /^1 of /.test(document.querySelector('.view-tools [role=status]').textContent));
});

test('what is shown is saved as a picture, and a table as Markdown', async () => {
  await show('view=flame&value=total_bytes&libraries=1');
  await shown.page.waitForSelector('.flame canvas');
  const item = await share('Save as picture');
  const png = readFileSync(await saved(() => item.click()));
  assert.equal(png.subarray(1, 4).toString(), 'PNG');
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  assert.ok(width > 600 && height > 300 && png.length > 5000, `${width}x${height}, ${png.length} bytes`);
  await show('view=stacks&sort=st');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  await shown.page.click('.table-menu button:has-text("Table")');
  await shown.page.click('.popover-box button:has-text("Copy as Markdown")');
  await waitUntil(shown.page, () => /copied/.test(document.querySelector('.table-menu [role=status]').textContent));
  const text = await shown.page.evaluate(() => navigator.clipboard.readText());
  assert.match(text, /^\*\*shop-1\.0\.heapr Stacks\*\*\n\n\| % \|/);
  assert.match(text, /\| ---: \|/);
  assert.match(text, /```\nheapr report .* --stacks st\n```/);
});

test('an editor that was chosen opens the place', async () => {
  await show('view=stacks&sort=peak');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  await shown.page.locator('.rows-block .row[aria-rowindex="2"]').click();
  await shown.page.waitForSelector('.stack-frames .place');
  await shown.page.selectOption('select[aria-label^="Editor"]', { label: 'VS Code' });
  await shown.page.waitForSelector('.stack-frames .place a[href^="vscode://file/"]');
  const links = await shown.page.locator('.stack-frames .place a').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
  assert.ok(links.some((link) => /shop-1\.0\.cc:\d+$/.test(link)), links.join());
  await shown.page.selectOption('select[aria-label^="Editor"]', { label: 'no editor' });
});

test('a brushed range says how fast memory grows', async () => {
  await show('view=stacks');
  await shown.page.locator('.timeline canvas').focus();
  await shown.page.keyboard.press('Enter');
  await shown.page.waitForSelector('.range-rate');
  assert.match(await shown.page.textContent('.range-rate'), /^[+-]?[\d.]+ \w+, [+-]?[\d.]+ \w+\/s$/);
  // Rates have no peak of bytes.
  await shown.page.selectOption('select[aria-label="Timeline shows"]', { label: 'Allocations per second' });
  await shown.page.waitForSelector('.timeline-tools .is-peak', { state: 'detached' });
});

test('a file that is dropped is opened, and a program of another version is compared by its functions', async () => {
  await show('');
  await shown.page.setInputFiles('input[aria-label="Files to open"]', join(shown.work.folder, 'shop-2.0.heapr'));
  await shown.page.waitForSelector('.file-tab.is-on:has-text("shop-2.0.heapr")');
  await show('file=1&view=compare&before=0&group=frames&sort=st');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  const names = await shown.page.locator('.rows-block .row').evaluateAll((rows) => rows.map((row) => row.textContent));
  // Each function appears once, not once for each program.
  assert.equal(names.filter((name) => name.includes('_M_get_node')).length <= 1, true, names.join('\n'));
  await show('file=1&view=compare&before=0&group=stacks&sort=st');
  await shown.page.waitForSelector('.rows-block .row .is-own:has-text("SessionCache::remember")');
  const text = await shown.page.locator('.rows-block .row[aria-rowindex="2"] .cell').evaluateAll((cells) => cells.map((cell) => cell.title));
  assert.ok(!text[1].startsWith('0 ') && !text[2].startsWith('0 '), `both sides have it: ${text.slice(0, 3)}`);
  assert.deepEqual(shown.browser.errors, []);
});

test('what is shown is saved as one page, which opens with it, and whose filters, peak, comparison and search work', { timeout: 240_000 }, async () => {
  await show('file=0&view=stacks&sort=st&require_frames=shop%3A%3AserVE');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  const rows = (page) => page.locator('.rows-block .row').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.title || cell.textContent).join(' | ')));
  const live = await rows(shown.page);
  const item = await share('Save as one page');
  const path = await saved(() => item.click());
  const alone = await openBrowser();
  try {
    await alone.page.goto(pathToFileURL(path).href);
    await alone.page.waitForSelector('.chip:has-text("serVE")');
    await alone.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
    assert.deepEqual(await rows(alone.page), live);
    const fails = () => alone.page.locator('.message.is-error, .filter-error').count();
    await alone.page.fill('.search', 'remember');
    await waitUntil(alone.page, () => [...document.querySelectorAll('.rows-block .row')].every((row) => /remember/.test(row.textContent + [...row.children].map((cell) => cell.title).join())));
    await alone.page.click('.chip');
    await alone.page.waitForSelector('.chip', { state: 'detached' });
    await alone.page.click('.is-peak');
    await alone.page.waitForSelector('.chip:has-text("live at the peak")');
    await alone.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
    assert.equal(await fails(), 0);
    // The filters that the page has.
    await alone.page.click('.filter-add button');
    const choice = alone.page.locator('.popover-box button:has-text("remember")').first();
    await choice.click();
    await alone.page.waitForSelector('.chip:has-text("remember")');
    await waitUntil(alone.page, () => !document.querySelector('.table.is-old'));
    for (const [group, tab] of [['Answer', 'Overview'], ['Where', 'Flame graph'], ['Where', 'Stacks'], ['Where', 'Functions'], ['Answer', 'Leaks'], ['Time', 'Histograms'], ['Time', 'Types']]) {
      await alone.page.keyboard.press('Escape');
      await alone.page.click(`role=tab[name="${group}"]`);
      await alone.page.click(`role=tab[name="${tab}"]`);
      await alone.page.waitForTimeout(150);
      assert.equal(await fails(), 0, `${tab}: ${await alone.page.locator('.message.is-error, .filter-error').allTextContents()}`);
    }
    await alone.page.evaluate(() => { location.hash = 'file=0&view=compare&before=1&group=stacks&sort=st'; });
    await alone.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
    await alone.page.evaluate(() => { location.hash = 'file=1&view=compare&before=0&group=stacks&sort=st'; });
    await alone.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
    assert.equal(await fails(), 0);
    assert.deepEqual(alone.errors, []);
  } finally {
    await alone.close();
  }
});

test('a double click zooms to the box that was clicked, in both shapes, with nothing chosen before', async () => {
  for (const shape of ['flame', 'icicle']) {
    for (const row of [2, 4, 6]) {
      await show(`view=flame&value=total_bytes&shape=${shape}&libraries=1`);
      await shown.page.waitForSelector('.flame canvas');
      const box = await shown.page.locator('.flame canvas').boundingBox();
      const rowPx = await shown.page.evaluate(() => Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 1.45));
      const at = (row + 0.5) * rowPx;
      const [x, y] = [box.x + box.width * 0.3, shape === 'flame' ? box.y + box.height - at : box.y + at];
      await shown.page.mouse.move(x - 1, y);
      await shown.page.mouse.move(x, y);
      const name = await shown.page.textContent('.tooltip strong');
      await shown.page.mouse.dblclick(x, y);
      await shown.page.waitForSelector('.trail button:disabled');
      const zoomed = await shown.page.textContent('.trail button:disabled');
      assert.equal(zoomed.replace(/[(<].*/, ''), name.replace(/[(<].*/, ''), `${shape}, row ${row}`);
    }
  }
});

test('every export is a file', async () => {
  await show('view=stacks&sort=st');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  await shown.page.click('button:has-text("Export")');
  const names = await shown.page.locator('.popover-box .menu-item').allTextContents();
  assert.ok(names.includes('json') && names.includes('csv') && names.length >= 6, names.join());
  for (const name of names) {
    const bytes = readFileSync(await saved(() => shown.page.locator('.popover-box .menu-item').getByText(name, { exact: true }).click()));
    assert.ok(bytes.length > 20, name);
    if (name === 'json' || name === 'speedscope') JSON.parse(bytes.toString());
  }
  assert.equal(await shown.page.locator('.popover-box .filter-error').count(), 0);
});
