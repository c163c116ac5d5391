// Runs axe-core on every view: no violation of WCAG A and AA, nor of good practice. The themes
// differ in colours alone.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { openBrowser, waitUntil } from './browser.mjs';
import { startMock } from './mock-server.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const VIEWS = [
  ...['overview', 'flame', 'stacks', 'functions', 'frames', 'images', 'threads', 'leaks', 'histograms', 'types', 'compare', 'tree'].map((view) => `file=0&view=${view}&select=s3&before=1`),
  'file=0&view=overview&finding=0', 'file=0&view=compare&group=stacks&before=1', 'file=5&view=snapshots', 'file=5&view=snapshots&part=suspects', 'file=5&view=snapshots&part=pages', 'file=5&view=snapshots&part=holders', 'file=5&view=snapshots&part=leaks', 'file=5&view=snapshots&part=dominators&object=99', 'file=5&view=place&notes=1ms+first+note', 'file=5&view=resident', 'file=6',
  ...['summary', 'comparison', 'containment', 'dominators', 'statistics', 'suspects', 'treemap', 'lists', 'search'].map((view) => `file=2&view=${view}&object=99`),
];

let mock;
before(async () => { mock = await startMock(); });
after(() => mock?.stop());

for (const dark of [false, true]) {
  test(`no view has a violation, ${dark ? 'dark' : 'light'}`, { timeout: 300_000 }, async () => {
    const rules = dark ? { type: 'rule', values: ['color-contrast'] } : { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] };
    const browser = await openBrowser({ dark });
    try {
      await browser.page.goto(mock.url);
      await browser.page.waitForSelector('.tabs');
      await browser.page.evaluate(AXE);
      const found = [];
      for (const view of VIEWS) {
        await browser.page.evaluate((text) => { location.hash = text; }, view);
        // A request is marked as loading from the next frame on.
        await browser.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
        await waitUntil(browser.page, () => !document.querySelector('.is-old, .is-waiting') && ![...document.querySelectorAll('.empty')].some((text) => /Loading|Comparing/.test(text.textContent)));
        const violations = await browser.page.evaluate((rules) => window.axe.run(document, { runOnly: rules, resultTypes: ['violations'] }).then((result) => result.violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, any }) => `${html.slice(0, 160)} ${any[0]?.message ?? ''}`).join(' | ')}`)), rules);
        found.push(...violations.map((text) => `${view}: ${text}`));
      }
      assert.deepEqual(found, []);
    } finally {
      await browser.close();
    }
  });
}
