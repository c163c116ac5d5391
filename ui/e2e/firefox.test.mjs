// The page in Firefox: every view of invented answers is drawn without an exception.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openFirefox } from './firefox.mjs';
import { startMock } from './mock-server.mjs';

let mock, firefox;
before(async () => {
  mock = await startMock();
  firefox = await openFirefox();
}, { timeout: 90_000 });
after(async () => {
  await firefox?.close();
  mock?.stop();
});

const VIEWS = [
  ['view=overview', '.ranking .amount'], ['view=flame', '.flame canvas'], ['view=stacks', '.rows-block .row[aria-rowindex="2"] .cell:nth-child(2)'], ['view=leaks', '.growth'],
  ['view=histograms', '.bars .bar'], ['view=types&range=1s&range=2s', '.type-card'], ['view=compare&before=1', '.table'], ['file=2&view=summary', '.class-name'], ['file=2&view=statistics', '.ring'],
  ['file=2&view=treemap', '.treemap canvas'], ['file=2&view=summary&object=99&lower=paths', '.path-object'],
];

test('every view is drawn in Firefox', async () => {
  for (const [hash, sign] of VIEWS) {
    await firefox.goto('about:blank');
    await firefox.goto(`${mock.url}#${hash}`);
    await firefox.until(`document.querySelector(${JSON.stringify(sign)})`);
    assert.equal(await firefox.evaluate('return document.querySelectorAll(".message.is-error").length'), 0, hash);
  }
});

test('pictures on canvas are not empty in Firefox', async () => {
  await firefox.goto('about:blank');
  await firefox.goto(`${mock.url}#view=flame`);
  await firefox.until('document.querySelectorAll("canvas").length === 2');
  await firefox.until(`[...document.querySelectorAll('canvas')].every((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 4 * 97) colours.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
    return colours.size > 5;
  })`);
});

test('a million rows scroll to their end in Firefox', async () => {
  await firefox.goto('about:blank');
  await firefox.goto(`${mock.url}#view=stacks`);
  await firefox.until('document.querySelector(\'.rows-block .row[aria-rowindex="2"] .cell:nth-child(2)\')');
  await firefox.evaluate('const table = document.querySelector(".table"); table.scrollTop = table.scrollHeight;');
  await firefox.until('document.querySelector(\'.rows-block .row[aria-rowindex="1000001"] .cell:nth-child(2)\')');
});
