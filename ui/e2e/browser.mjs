// Debian's Chromium through Playwright, with a profile of its own that is removed afterwards.
import { chromium } from 'playwright-core';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

/** Opens a browser; exceptions and logged errors of the page are collected in `errors`. */
export async function openBrowser({ width = 1280, height = 800, scale = 1, dark = false } = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'heapr-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS, headless: true, viewport: { width, height }, deviceScaleFactor: scale,
    colorScheme: dark ? 'dark' : 'light', permissions: ['clipboard-read', 'clipboard-write'], timeout: 60_000,
  });
  context.setDefaultTimeout(60_000);
  const page = context.pages()[0] ?? (await context.newPage());
  if (process.env.HEAPR_DIST) await servePageFrom(context, process.env.HEAPR_DIST);
  const errors = [];
  page.on('pageerror', (error) => errors.push(`page: ${error.stack ?? error}`));
  page.on('console', (message) => message.type() === 'error' && errors.push(`console: ${message.text()}`));
  return {
    page, errors, profile,
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/**
 * Serves the page from a folder in place of the binary's, for work on the page without building
 * heapr.
 */
async function servePageFrom(context, folder) {
  const types = { '/': 'text/html', '/app.js': 'text/javascript', '/app.css': 'text/css' };
  await context.route((url) => url.pathname in types && url.search === '', (route) => {
    const { pathname } = new URL(route.request().url());
    return route.fulfill({ path: join(folder, pathname === '/' ? 'index.html' : pathname), contentType: types[pathname] });
  });
}

/**
 * Waits until `check` is true in the page. Playwright's own waiting needs `eval`, which the page's
 * policy forbids.
 */
export async function waitUntil(page, check, argument) {
  const end = Date.now() + 60_000;
  for (;;) {
    if (await page.evaluate(check, argument)) return;
    if (Date.now() > end) throw new Error(`not so within 15 s: ${check}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}
