// Measures the page, for `cargo xtask bench view`: node e2e/bench.mjs [--trace FILE.heapr]…
// [--snapshot FILE.heapsnapshot]
// Prints one line of JSON for each measure: {"what", "of", "value", "unit", "must"}.
import { readFileSync, readdirSync } from 'node:fs';
import { openBrowser, waitUntil } from './browser.mjs';
import { frameTimes } from './frames.mjs';
import { view } from './heapr.mjs';
import { startMock } from './mock-server.mjs';

const words = process.argv.slice(2);
const tell = (what, of, value, unit, must = null) => console.log(JSON.stringify({ what, of, value: Math.round(value * 10) / 10, unit, must }));
const work = { folder: process.cwd(), env: process.env };
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/**
 * Returns the milliseconds from `change` until `isDone` (in the page) is true in a frame. It takes
 * as many frames as needed, without polling beside.
 */
async function until(page, change, isDone, argument) {
  return page.evaluate(async ({ change, isDone, argument }) => {
    const [begin, done] = [eval(`(${change})`), eval(`(${isDone})`)];
    const start = performance.now();
    begin(argument);
    for (;;) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
      if (done(argument)) break;
      if (performance.now() - start > 60_000) throw new Error(`not so within a minute: ${isDone}`);
    }
    return performance.now() - start;
  }, { change: change.toString(), isDone: isDone.toString(), argument });
}
/** Returns how long the last change waited for the server: the longest of its requests, in ms. */
const serverMs = (page) => page.evaluate(() => {
  const took = performance.getEntriesByType('resource').filter(({ name }) => name.includes('/api/') && !name.endsWith('/api/files')).map(({ startTime, responseEnd }) => responseEnd - startTime);
  performance.clearResourceTimings();
  return Math.max(0, ...took);
});
/** Whether all panels show the requested data: no panel is old or loading. */
const isSettled = `!document.querySelector('.is-old') && ![...document.querySelectorAll('[role=status]')].some((element) => /loading|Loading/.test(element.textContent))`;

/** Returns the resident memory of the page's process, in MiB: the renderer with the most. */
function rendererMiB(profile) {
  let most = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (!command.includes('--type=renderer') || !command.includes(profile)) continue;
      most = Math.max(most, Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024);
    } catch {
      // The process has ended.
    }
  }
  return most;
}
async function heapMiB(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { metrics } = await session.send('Performance.enable').then(() => session.send('Performance.getMetrics'));
  return metrics.find(({ name }) => name === 'JSHeapUsedSize').value / 2 ** 20;
}

async function traceBench(file) {
  const name = file.slice(file.lastIndexOf('/') + 1);
  const browser = await openBrowser();
  const { page } = browser;
  // The page's policy forbids `eval`, which the measuring needs.
  const [firsts, printed] = [[], []];
  let server;
  for (let round = 0; round < 3; round += 1) {
    await server?.stop();
    const start = performance.now();
    server = await view(work, [file]);
    const begun = performance.now();
    await page.goto(server.url, { waitUntil: 'commit' });
    await page.waitForSelector('.ranking .amount');
    firsts.push(performance.now() - start);
    printed.push(begun - start);
  }
  tell('first picture: of it until the address is printed', name, median(printed), 'ms');
  tell('first picture: from the start of heapr view to the overview', name, median(firsts), 'ms', 1000);
  await page.waitForSelector('.legend li', { timeout: 120_000 });
  // Data shared by all queries is computed once, after the first picture.
  await waitUntil(page, async () => (await (await fetch('/api/files')).json()).files.every((one) => one.tasks.length === 0));
  const events = await page.evaluate(() => [...document.querySelectorAll('.facts div')].find((div) => div.textContent.startsWith('Events'))?.textContent ?? '');
  tell('events', name, Number(events.replace(/\D/g, '')), '');
  const must = Number(events.replace(/\D/g, '')) > 20e6 ? 1000 : 150;
  const end = await page.evaluate(async () => (await (await fetch('/api/files')).json()).files[0].trace.duration_ns);
  for (const view of ['stacks', 'flame', 'histograms', 'leaks', 'types']) {
    const [took, waited] = [[], []];
    await serverMs(page);
    for (const [from, to] of [[0, 60], [10, 60], [40, 45], [90, 100], [25, 75], [33, 34]]) {
      const [first, last] = [from, to].map((part) => `${Math.floor((end / 100) * part)}ns`);
      const hash = `view=${view}&range=${first}&range=${last}`;
      took.push(await until(page, '(hash) => { location.hash = hash; }', `(hash) => ${isSettled} && [...document.querySelectorAll('.command code')].some((code) => code.textContent.includes('${last}'))`, hash));
      waited.push(await serverMs(page));
    }
    tell(`brush a range, ${view}`, name, median(took), 'ms, median', must);
    tell(`brush a range, ${view}`, name, Math.max(...took), 'ms, worst', must);
    tell(`brush a range, ${view}: of it the server`, name, median(waited), 'ms, median');
  }
  const filters = [];
  for (const filter of ['size=1K&size=1M', 'lifetime=0&lifetime=1ms', 'temporary=1', 'no_default_cull=1', 'at=peak']) {
    const hash = `view=stacks&${filter}`;
    const took = await until(page, '(hash) => { location.hash = hash; }', `(hash) => ${isSettled} && /--(size|lifetime|temporary|no-default-cull|at)/.test(document.querySelector('.command code')?.textContent ?? '')`, hash);
    filters.push(took);
    tell(`change a filter, stacks: ${filter}`, name, took, 'ms', must);
    await until(page, '() => { location.hash = "view=stacks"; }', `() => ${isSettled} && !/--(size|lifetime|temporary|no-default-cull|at)/.test(document.querySelector('.command code')?.textContent ?? '-- at')`, '');
  }
  tell('change a filter, stacks', name, Math.max(...filters), 'ms, worst', must);
  tell('memory of the page: objects', name, await heapMiB(page), 'MiB', 300);
  tell('memory of the page: its process at most', name, rendererMiB(browser.profile), 'MiB', 300);
  await browser.close();
  await server.stop();
}

async function snapshotBench(file) {
  const name = file.slice(file.lastIndexOf('/') + 1);
  const browser = await openBrowser();
  const { page } = browser;
  // The first round creates the index.
  let server = await view(work, [file]);
  await page.goto(server.url);
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"]', { timeout: 120_000 });
  await server.stop();
  const firsts = [];
  for (let round = 0; round < 3; round += 1) {
    const start = performance.now();
    server = await view(work, [file]);
    await page.goto(server.url, { waitUntil: 'commit' });
    await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
    firsts.push(performance.now() - start);
    if (round < 2) await server.stop();
  }
  tell('summary shown, index present: from the start of heapr view', name, median(firsts), 'ms', 1000);
  // Each order is another list of a class's objects.
  for (const sort of ['retained', 'shallow', 'count', 'distance', 'name']) {
    for (const ascending of [0, 1]) {
      await page.evaluate(([sort, ascending]) => { location.hash = `view=summary&sort=${sort}${ascending ? '&ascending=1' : ''}`; }, [sort, ascending]);
      await page.waitForTimeout(400);
      const [classes, objects] = await openRows(page);
      const what = `by ${sort}${ascending ? ', turned' : ''}`;
      tell(`expand a class, ${what}`, name, Math.max(...classes), 'ms, worst', 100);
      if (objects.length > 0) tell(`expand an object, ${what}`, name, Math.max(...objects), 'ms, worst', 100);
    }
  }
  for (const view of ['containment', 'dominators']) {
    await page.evaluate((view) => { location.hash = `view=${view}`; }, view);
    await page.waitForTimeout(800);
    const [tops, belows] = await openRows(page);
    tell(`expand a row of ${view}`, name, Math.max(...tops, ...belows), 'ms, worst', 100);
  }
  for (const view of ['containment', 'dominators', 'statistics', 'treemap']) {
    const ready = { containment: '.row[aria-rowindex="2"] .heap-name', dominators: '.row[aria-rowindex="2"] .heap-name', statistics: '.ring', treemap: '.treemap canvas' }[view];
    tell(`show ${view}`, name, await until(page, '([view]) => { location.hash = `view=${view}`; }', `([view, ready]) => document.querySelector('[role=tabpanel]').ariaLabel.toLowerCase() === view && document.querySelector(ready) && document.querySelector('.command code') && ${isSettled}`, [view, ready]), 'ms');
  }
  tell('memory of the page: objects', name, await heapMiB(page), 'MiB', 300);
  tell('memory of the page: its process at most', name, rendererMiB(browser.profile), 'MiB', 300);
  await browser.close();
  await server.stop();
}

/**
 * Opens and closes the first rows that can be opened, and the first below each; returns the time of
 * each.
 */
async function openRows(page) {
  const press = '([row]) => document.querySelector(`.row[aria-rowindex="${row}"] .twisty`)?.dispatchEvent(new MouseEvent("mousedown", { bubbles: true, button: 0 }))';
  const isOpen = '([row, level]) => document.querySelector(`.row[aria-rowindex="${row}"][aria-expanded=true]`) && document.querySelector(`.row[aria-rowindex="${row + 1}"][aria-level="${level + 1}"] .heap-name`)';
  const isShut = '([row, level]) => !document.querySelector(`.row[aria-rowindex="${row + 1}"][aria-level="${level + 1}"]`)';
  const canOpen = (row) => page.evaluate((row) => document.querySelector(`.row[aria-rowindex="${row}"]`)?.getAttribute('aria-expanded') === 'false', row);
  const tops = [];
  const belows = [];
  for (let row = 2; row < 14; row += 1) {
    if (!(await canOpen(row))) continue;
    tops.push(await until(page, press, isOpen, [row, 1]));
    if (await canOpen(row + 1)) {
      belows.push(await until(page, press, isOpen, [row + 1, 2]));
      await until(page, press, isShut, [row + 1, 2]);
    }
    await until(page, press, isShut, [row, 1]);
  }
  return [tops, belows];
}

/** Measures frames while a million rows scroll and a hundred thousand boxes pan. */
async function smoothBench() {
  const mock = await startMock();
  const browser = await openBrowser();
  const { page } = browser;
  const moves = [
    ['scroll a million rows', 'view=stacks', '.rows-block .row[aria-rowindex="2"]', (step) => { document.querySelector('.table').scrollTop += step % 40 === 39 ? 100000 : 130; }],
    ['pan a flame graph of 100,000 boxes', 'view=flame&libraries=1', '.flame canvas', (step) => {
      const canvas = document.querySelector('.flame canvas');
      const box = canvas.getBoundingClientRect();
      const at = { clientX: box.left + 500, clientY: box.top + 200, bubbles: true, cancelable: true };
      canvas.dispatchEvent(new WheelEvent('wheel', step < 30 ? { ...at, ctrlKey: true, deltaY: -40 } : { ...at, deltaX: step % 2 ? 40 : -25, deltaY: 3 }));
    }],
    ['zoom the timeline', 'view=images', '.timeline canvas', (step) => {
      const canvas = document.querySelector('.timeline canvas');
      const box = canvas.getBoundingClientRect();
      canvas.dispatchEvent(new WheelEvent('wheel', { clientX: box.left + 600, clientY: box.top + 40, bubbles: true, cancelable: true, deltaY: step < 50 ? -30 : 30 }));
    }],
  ];
  // Time of the machine and the browser alone, so that the cause of a long frame can be told.
  await page.setContent('<div id="box" style="width: 1200px; height: 700px"></div>');
  const floor = await frameTimes(page, 240, (step) => { document.getElementById('box').style.background = step % 2 ? '#234' : '#fed'; });
  tell('a page with a box that changes its colour', 'the floor', floor.longest, 'ms, longest frame');
  tell('a page with a box that changes its colour', 'the floor', floor.p95, 'ms, 95 of 100 frames');
  for (const [what, hash, ready, move] of moves) {
    await page.goto('about:blank');
    await page.goto(`${mock.url}#${hash}`);
    await page.waitForSelector(ready);
    await page.waitForTimeout(600);
    const times = await frameTimes(page, 240, move);
    tell(what, 'made-up answers', times.longest, 'ms, longest frame', 33.4);
    tell(what, 'made-up answers', times.p95, 'ms, 95 of 100 frames');
  }
  tell('memory of the page: its process at most', 'made-up answers', rendererMiB(browser.profile), 'MiB', 300);
  await browser.close();
  mock.stop();
}

const asked = (option) => words.flatMap((word, at) => (word === option && words[at + 1] ? [words[at + 1]] : []));
if (!words.includes('--no-smooth')) await smoothBench();
for (const file of asked('--trace')) await traceBench(file);
for (const file of asked('--snapshot')) await snapshotBench(file);
