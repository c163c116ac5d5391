// Names in tables and pictures: in the colour of the legend, before their callers, further right
// the deeper they are.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openBrowser, waitUntil } from './browser.mjs';
import { startMock } from './mock-server.mjs';

let mock, browser, page;
before(async () => {
  mock = await startMock();
  browser = await openBrowser();
  page = browser.page;
}, { timeout: 90_000 });
after(async () => {
  await browser?.close();
  mock?.stop();
});
async function show(hash) {
  await page.goto('about:blank');
  await page.goto(`${mock.url}#${hash}`);
  await page.waitForSelector('.tabs');
}
const colour = (selector) => page.locator(selector).first().evaluate((swatch) => getComputedStyle(swatch).backgroundColor);

test('an image has one colour in the legend and in tables, in both themes', async () => {
  await show('view=images');
  for (const theme of ['light', 'dark']) {
    await page.evaluate((theme) => localStorage.setItem('heapr-theme', theme), theme);
    await page.reload();
    await waitUntil(page, () => document.querySelectorAll('.legend li').length > 3);
    const row = '.rows-block .frame-name:has(.symbol:text-is("/usr/bin/clang")) .swatch';
    await page.waitForSelector(row);
    assert.equal(await colour(row), await colour('.legend li:has-text("clang++ (clang)") .swatch'), theme);
    // Existing rows take the other theme's colour.
    await page.keyboard.press('t');
    await waitUntil(page, () => document.querySelectorAll('.legend li').length > 3);
    assert.equal(await colour(row), await colour('.legend li:has-text("clang++ (clang)") .swatch'), `${theme}, then the next`);
  }
  await page.evaluate(() => localStorage.clear());
});

test('in a narrow table the function is read before its callers, and these before its image', async () => {
  await page.setViewportSize({ width: 1280, height: 800 });
  await show('view=stacks&select=s5');
  await page.waitForSelector('.stack-frames li');
  await page.waitForSelector('.rows-block .stack-name .callers');
  const parts = await page.locator('.rows-block .stack-name:has(.callers)').evaluateAll((names) => names.map((name) => {
    const [symbol, callers] = [name.querySelector('.symbol'), name.querySelector('.callers')];
    return { isWhole: symbol.scrollWidth <= symbol.clientWidth + 1, share: symbol.clientWidth / name.clientWidth, callersPx: callers.clientWidth };
  }));
  assert.ok(parts.length > 5);
  for (const { isWhole, share, callersPx } of parts) {
    assert.ok(isWhole || share > 0.5, `a function takes ${share} of its cell`);
    assert.ok(callersPx > 20, `callers have ${callersPx} pixels`);
  }
});

/** Views with names of frames and stacks. */
const NAMED = ['overview', 'stacks', 'stacks&select=s5', 'leaks', 'leaks&select=s5', 'functions', 'frames', 'threads', 'tree', 'compare', 'compare&group=stacks'].map((view) => `file=0&view=${view}`)
  .concat(['summary', 'comparison&between=1', 'suspects', 'holders', 'leaks'].map((part) => `file=5&view=snapshots&part=${part}`), ['file=2&view=comparison', 'file=2&view=summary']);

test('a name without room for six letters is left out, and the heads of columns are whole', { timeout: 240_000 }, async () => {
  for (const [width, height] of [[1280, 720], [1440, 900], [1920, 1080], [3840, 2160]]) {
    await page.setViewportSize({ width, height });
    for (const view of NAMED) {
      await show(view);
      await page.waitForSelector('.rows-block .row[aria-rowindex="2"], .ranking li');
      await waitUntil(page, () => !document.querySelector('.is-old, .is-waiting'));
      const crumbs = await page.evaluate(() => {
        const parts = [...document.querySelectorAll(':is(.rows-block, .ranking) :is(.through, .callers, .frame-name > .quiet)')];
        const isSeen = (part) => {
          const [box, around] = [part.getBoundingClientRect(), part.closest('.stack-name, .frame-name, .cell').getBoundingClientRect()];
          return box.width > 0 && box.top < around.bottom - 2;
        };
        const isCrumb = (part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth < 3 * Number.parseFloat(getComputedStyle(part).fontSize);
        return [...new Set(parts.filter((part) => isSeen(part) && isCrumb(part)).map((part) => `${part.className}: ${part.clientWidth} of ${part.textContent.slice(0, 40)}`))].slice(0, 4);
      });
      assert.deepEqual(crumbs, [], `${view} at ${width}`);
      const heads = await page.evaluate(() => [...document.querySelectorAll('.row.is-head .cell')].filter((cell) => [cell, ...cell.querySelectorAll('.sort')].some((part) => part.scrollWidth > part.clientWidth + 1)).map((cell) => cell.textContent));
      assert.deepEqual(heads, [], `heads of ${view} at ${width}`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
});

test('an opened row stands further right than the one it belongs to, and its name is not lost', async () => {
  await show('file=2&view=containment');
  await page.waitForSelector('.row[aria-rowindex="3"] .object-name');
  const left = (row) => page.locator(`.row[aria-rowindex="${row}"] .object-name`).evaluate((name) => name.getBoundingClientRect().left);
  let last = await left(3);
  for (let row = 3; row < 7; row += 1) {
    await page.locator(`.row[aria-rowindex="${row}"] .twisty`).click();
    // Waits for the first row below it.
    await page.waitForSelector(`.row[aria-rowindex="${row + 1}"][aria-level="${row - 1}"] .object-name`);
    const next = await left(row + 1);
    assert.ok(next > last + 8, `level ${row - 1} begins at ${next}, the one above at ${last}`);
    last = next;
    if ((await page.getAttribute(`.row[aria-rowindex="${row + 1}"]`, 'aria-expanded')) === null) break;
  }
  assert.deepEqual(browser.errors, []);
});

test('code without a name in a comparison leads to the frames of its image', async () => {
  await show('view=compare&before=1&picture=flame');
  await page.waitForSelector('.flame canvas');
  await waitUntil(page, () => ![...document.querySelectorAll('[role=status]')].some((element) => element.textContent.includes('loading')));
  const nameless = await page.evaluate(async () => {
    const { nodes, frames } = await (await fetch('/api/diff-flame', { method: 'POST', body: '{}' })).json();
    return nodes.id.find((_, at) => frames[nodes.frame[at]]?.symbol === 0 && frames[nodes.frame[at]].module > 0);
  });
  await page.evaluate((id) => { location.hash += `&select=${id}`; }, nameless);
  await page.click('.selection button:has-text("Frames of the image")');
  await waitUntil(page, () => location.hash.includes('view=frames') && location.hash.includes('match='));
});
