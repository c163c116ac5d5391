// A million rows scroll and a hundred thousand boxes pan without a frame over 33 ms.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openBrowser } from './browser.mjs';
import { frameVerdict } from './frames.mjs';
import { startMock } from './mock-server.mjs';

let mock, browser, page;
before(async () => {
  mock = await startMock();
  browser = await openBrowser();
  page = browser.page;
});
after(async () => {
  await browser?.close();
  mock?.stop();
});

test('a million rows scroll smoothly', async () => {
  await page.goto(`${mock.url}#view=stacks`);
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  const verdict = await frameVerdict(page, 8, 120, (step) => {
    document.querySelector('.table').scrollTop += step % 40 === 39 ? 100000 : 130;
  });
  console.log('scrolling a million rows:', JSON.stringify(verdict));
  assert.ok(verdict.isSmooth, `a frame took ${verdict.best.longest} ms`);
});

test('a hundred thousand boxes pan and zoom smoothly', async () => {
  await page.goto(`${mock.url}#view=flame&libraries=1`);
  await page.waitForSelector('.flame canvas');
  await page.waitForTimeout(500);
  const verdict = await frameVerdict(page, 8, 120, (step) => {
    const canvas = document.querySelector('.flame canvas');
    const box = canvas.getBoundingClientRect();
    const at = { clientX: box.left + 500, clientY: box.top + 200, bubbles: true, cancelable: true };
    canvas.dispatchEvent(new WheelEvent('wheel', step < 30 ? { ...at, ctrlKey: true, deltaY: -40 } : { ...at, deltaX: step % 2 ? 40 : -25, deltaY: 3 }));
  });
  console.log('panning 100,000 boxes:', JSON.stringify(verdict));
  assert.ok(verdict.isSmooth, `a frame took ${verdict.best.longest} ms`);
});

test('the timeline zooms smoothly', async () => {
  await page.goto(`${mock.url}#view=images`);
  await page.waitForSelector('.timeline canvas');
  await page.waitForTimeout(500);
  const verdict = await frameVerdict(page, 8, 100, (step) => {
    const canvas = document.querySelector('.timeline canvas');
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new WheelEvent('wheel', { clientX: box.left + 600, clientY: box.top + 40, bubbles: true, cancelable: true, deltaY: step < 50 ? -30 : 30 }));
  });
  console.log('zooming the timeline:', JSON.stringify(verdict));
  assert.ok(verdict.isSmooth, `a frame took ${verdict.best.longest} ms`);
});
