// Setup of every test of the real server: files made by `make`, heapr view on them, and a browser
// that shows it.
import assert from 'node:assert/strict';
import { after, before, beforeEach } from 'node:test';
import { openBrowser, waitUntil } from './browser.mjs';
import { view, workFolder } from './heapr.mjs';

/**
 * Returns an object that is filled before the first test: `work server browser page origin`, and
 * `show(hash)`, `shownCommand()`. `make` writes into `work.folder` and returns the words for `heapr
 * view`.
 */
export function viewed(make) {
  const shown = {
    /** Shows another view, from a page without state. */
    async show(hash) {
      await shown.page.goto('about:blank');
      await shown.page.goto(`${shown.origin}/#${hash}`);
      await shown.page.waitForSelector('.tabs');
    },
    /** Returns the shown command line, once the view has its answer. */
    async shownCommand() {
      await shown.page.waitForSelector('.filter-row .command code');
      await waitUntil(shown.page, () => !document.querySelector('.table.is-old'));
      return shown.page.textContent('.filter-row .command code');
    },
  };
  before(async () => {
    shown.work = workFolder();
    shown.server = await view(shown.work, await make(shown.work));
    shown.browser = await openBrowser();
    shown.page = shown.browser.page;
    shown.origin = new URL(shown.server.url).origin;
    await shown.page.goto(shown.server.url);
    assert.ok(!shown.page.url().includes('token'), 'the token stands in no address that is shared');
    await shown.page.goto(shown.origin);
    await shown.page.waitForSelector('.tabs');
  }, { timeout: 180_000 });
  after(async () => {
    await shown.browser?.close();
    await shown.server?.stop();
    shown.work?.remove();
  });
  beforeEach(() => {
    shown.browser.errors.length = 0;
  });
  return shown;
}
