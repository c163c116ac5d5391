// Takes pictures of views: node e2e/shots.mjs BASE_URL NAME=HASH… (--dark, --size WxH, --zoom 1.5)
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openBrowser } from './browser.mjs';
import { startMock } from './mock-server.mjs';

const shots = join(dirname(fileURLToPath(import.meta.url)), 'shots');
mkdirSync(shots, { recursive: true });
const words = process.argv.slice(2);
const dark = words.includes('--dark');
const sizeAt = words.indexOf('--size');
const [width, height] = (sizeAt < 0 ? '1440x900' : words.splice(sizeAt, 2)[1]).split('x').map(Number);
const zoomAt = words.indexOf('--zoom');
const zoom = zoomAt < 0 ? 1 : Number(words.splice(zoomAt, 2)[1]);
const [base, ...views] = words.filter((word) => !word.startsWith('--'));
const mock = base === 'mock' ? await startMock() : null;
const browser = await openBrowser({ width: Math.round(width / zoom), height: Math.round(height / zoom), scale: zoom, dark });
await browser.page.goto(mock?.url ?? base);
if (!mock) await browser.page.goto(new URL(base).origin);
await browser.page.waitForSelector('.tabs');
for (const view of views) {
  const [, name, hash] = /^([^=]+)=(.*)$/.exec(view);
  await browser.page.evaluate((text) => { location.hash = text; }, hash);
  await browser.page.waitForTimeout(900);
  await browser.page.screenshot({ path: join(shots, `${name}${dark ? '-dark' : ''}.png`) });
}
console.log(browser.errors.join('\n') || 'no errors');
await browser.close();
mock?.stop();
