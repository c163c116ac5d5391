// The page with invented answers: properties for any data, and for data larger than real files.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { openBrowser, waitUntil } from './browser.mjs';
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
beforeEach(() => {
  browser.errors.length = 0;
});

const VIEWS = ['overview', 'flame', 'stacks', 'functions', 'frames', 'images', 'threads', 'leaks', 'histograms', 'types', 'compare', 'tree'].map((view) => `file=0&view=${view}&select=s3&before=1`)
  .concat(['view=compare&picture=flame&before=1', 'view=compare&group=stacks&before=1', 'view=overview&finding=0', 'view=frames&select=f3'])
  .concat(['summary', 'comparison', 'containment', 'dominators', 'statistics', 'suspects', 'treemap', 'lists', 'search'].map((view) => `file=3&view=${view}&object=77&match=`))
  .concat(['summary', 'comparison&between=1', 'suspects', 'treemap', 'statistics', 'pages'].map((part) => `file=5&view=snapshots&part=${part}&select=s3`), ['file=5&view=stacks&snapshot=3'])
  .concat(['file=2&object=77&lower=paths', 'file=2&object=77&lower=object', 'file=4']);

async function show(hash) {
  await page.goto(`${mock.url}#${hash}`);
  await page.waitForSelector('.file-tab');
  await page.waitForLoadState('networkidle');
}

test('every view opens from its address without an error, and markup in names stays text', async () => {
  let seen = 0;
  for (const hash of VIEWS) {
    await page.goto('about:blank');
    await show(hash);
    seen += await page.evaluate(() => document.body.textContent.includes('markupRan') || document.body.textContent.includes('<b>') ? 1 : 0);
    assert.equal(await page.evaluate(() => window.markupRan), undefined, hash);
    assert.equal(await page.locator('.view img, .view b, .view script').count(), 0, hash);
  }
  assert.ok(seen > 10, `markup was seen as text in ${seen} views`);
  assert.deepEqual(browser.errors, []);
});

test('loss and damage are said in a banner', async () => {
  await show('file=0');
  const text = await page.locator('.message.is-warning').allTextContents();
  assert.match(text.join(' '), /3 events lost, 1 process not traced/);
  assert.match(text.join(' '), /damaged at offset 4,096 \(512 B, checksum\)/);
  await show('file=1');
  assert.match((await page.locator('.message.is-warning').allTextContents()).join(' '), /was replaced or cut off/);
  await show('file=4');
  assert.match(await page.locator('.message.is-error').first().textContent(), /no trace: it begins with "GIF89a" \(offset 0\)/);
});

test('what is not known yet is not shown as nothing', async () => {
  for (const [path, hash] of [['/api/findings', 'view=leaks'], ['/api/leaks', 'view=leaks'], ['/api/report', 'view=stacks'], ['/api/functions', 'view=functions'], ['/api/diff-functions', 'view=compare'], ['/api/diff', 'view=compare&group=stacks']]) {
    let release;
    mock.held.set(path, new Promise((resolve) => { release = resolve; }));
    await page.goto('about:blank');
    const from = mock.asked.length;
    await page.goto(`${mock.url}#${hash}`);
    await page.waitForSelector('.table');
    while (!mock.asked.slice(from).some((one) => one.path === path)) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(await page.locator('.table .empty').allTextContents(), ['Loading…'], `${hash} while ${path} is awaited`);
    mock.held.delete(path);
    release();
    await page.waitForSelector('.rows-block .row');
  }
});

test('the older of two recordings is before, and a pair can be turned', async () => {
  const sides = () => page.evaluate(() => ['File before', 'File after'].map((label) => document.querySelector(`select[aria-label="${label}"]`)?.selectedOptions[0]?.text));
  for (const file of [0, 1]) {
    await show(`file=${file}&view=compare`);
    await page.waitForSelector('.rows-block .row');
    assert.deepEqual(await sides(), ['second.heapr', 'mock.heapr']);
    assert.deepEqual(mock.asked.findLast((one) => one.path === '/api/diff-functions').body.sides.map((side) => side.file), [1, 0]);
  }
  await page.click('button:has-text("Turn")');
  await waitUntil(page, () => document.querySelector('select[aria-label="File before"]').selectedOptions[0].text === 'mock.heapr');
  assert.deepEqual(await sides(), ['mock.heapr', 'second.heapr']);
  // Snapshots are compared in the order in which they were given.
  for (const file of [2, 3]) {
    await show(`file=${file}&view=comparison`);
    await page.waitForSelector('.rows-block .row');
    const { before, after } = mock.asked.findLast((one) => one.path === '/api/snapshot/diff').body;
    assert.deepEqual([before, after], [2, 3]);
  }
});

test('an image that a link was started by says so', async () => {
  await show('view=images');
  await page.waitForSelector('.rows-block .frame-name:has-text("run as clang++")');
  // The legend shows the link, only for that image.
  await waitUntil(page, () => document.querySelectorAll('.legend li').length > 3);
  const legend = await page.locator('.legend li').allTextContents();
  assert.deepEqual(legend.filter((text) => text.includes('clang++')), ['clang++ (clang)']);
  // Frames in the image show the link, too; copied text has the file's name alone.
  await show('view=stacks');
  // Long names of functions and callers may leave it no room.
  await page.waitForSelector('.rows-block .frame-name .quiet:text-is("clang++ (clang)")', { state: 'attached' });
  const cell = page.locator('.rows-block .row:has(.frame-name .quiet:text-is("clang++ (clang)")) .cell').last();
  assert.match(await cell.getAttribute('title'), /^clang!/m);
  assert.ok(!(await cell.getAttribute('title')).includes('clang++ ('));
});

test('another stack is shown from its top', async () => {
  await show('view=stacks&select=s5');
  await page.waitForSelector('.stack-frames li');
  const scrolled = () => page.evaluate(() => document.querySelector('.stack-frames').scrollTop);
  await page.evaluate(() => { document.querySelector('.stack-frames').scrollTop = 200; });
  assert.ok(await scrolled() > 0);
  await page.evaluate(() => { location.hash = 'view=stacks&select=s6'; });
  await waitUntil(page, () => document.querySelector('.stack-pane:not(.is-old) .stack-frames')?.scrollTop === 0);
  // The same row stays at its scroll position.
  await page.evaluate(() => { document.querySelector('.stack-frames').scrollTop = 200; });
  await page.keyboard.press('?');
  await page.waitForSelector('.shortcuts');
  await page.keyboard.press('Escape');
  assert.ok(await scrolled() > 0);
});

test('a timeline that is zoomed writes its address once it stands still', async () => {
  await show('view=images');
  await page.waitForSelector('.timeline canvas');
  await waitUntil(page, () => document.querySelectorAll('.legend li').length > 3);
  const written = await page.evaluate(async () => {
    const canvas = document.querySelector('.timeline canvas');
    const box = canvas.getBoundingClientRect();
    const addresses = new Set([location.hash]);
    // The timers that end the movement wait for the last step: a frame may take any time here.
    const later = window.setTimeout;
    const waiting = [];
    window.setTimeout = (work, ms, ...rest) => (ms === 150 ? waiting.push(work) && 0 : later(work, ms, ...rest));
    for (let step = 0; step < 12; step += 1) {
      canvas.dispatchEvent(new WheelEvent('wheel', { clientX: box.left + 600, clientY: box.top + 40, bubbles: true, cancelable: true, deltaY: -60 }));
      await new Promise((resolve) => requestAnimationFrame(resolve));
      addresses.add(location.hash);
    }
    window.setTimeout = later;
    for (const work of waiting) work();
    return [...addresses];
  });
  assert.deepEqual(written, ['#view=images']);
  await waitUntil(page, () => location.hash.includes('seen='));
  const [from, to] = new URLSearchParams(new URL(page.url()).hash.slice(1)).getAll('seen').map(Number);
  assert.ok(to - from > 0 && to - from < 4.698e9 / 2, `${from} ${to}`);
  // A new address is shown, whatever was moved before.
  await page.evaluate(() => { location.hash = 'view=images'; });
  await waitUntil(page, () => ![...document.querySelectorAll('.timeline-tools button')].some((button) => button.textContent === 'Whole time'));
});

test('an error of the server is said where the filters are', async () => {
  await show('view=stacks&require_frames=bad!!');
  await page.waitForSelector('.filter-error');
  assert.match(await page.locator('.filter-error').textContent(), /two exclamation marks/);
});

test('Back undoes a step, a shared address shows the same', async () => {
  await page.goto('about:blank');
  await show('');
  await page.click('role=tab[name="Where"]');
  await page.click('role=tab[name="Stacks"]');
  await page.click('.cell button.sort:has-text("Total")');
  await waitUntil(page, () => location.hash.includes('sort=st'));
  const shared = page.url();
  await page.goBack();
  assert.ok(!page.url().includes('sort='));
  assert.ok(page.url().includes('view=stacks'));
  await page.goBack();
  assert.ok(page.url().includes('view=flame'));
  await page.goBack();
  assert.equal(await page.getAttribute('role=tab[name="Overview"]', 'aria-selected'), 'true');
  await page.goto('about:blank');
  await page.goto(shared);
  await page.waitForSelector('[role=columnheader][aria-sort=descending]:has-text("Total")');
});

test('the keyboard alone reaches everything', async () => {
  await page.goto('about:blank');
  await show('');
  await page.keyboard.press('?');
  await page.waitForSelector('dialog.shortcuts[open]');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog.shortcuts', { state: 'detached' });
  await page.keyboard.press('2');
  await page.waitForSelector('.view canvas');
  await page.keyboard.press('v');
  await page.waitForSelector('.table .row[aria-rowindex="2"]');
  await page.keyboard.press('m');
  await page.keyboard.press('End');
  await page.waitForSelector('.row.is-cursor[aria-rowindex="1000001"]');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  await waitUntil(page, () => location.hash.includes('select=s1'));
  await page.keyboard.press('/');
  await page.keyboard.type('clang');
  await waitUntil(page, () => location.hash.includes('match=clang'));
  await page.keyboard.press('Escape');
  await page.locator('.timeline canvas').focus();
  await page.keyboard.press('+');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.chip:has-text("range")');
  await page.keyboard.press('Escape');
  await page.waitForSelector('.chip', { state: 'detached' });
  await page.keyboard.press('p');
  await page.waitForSelector('.chip:has-text("live at the peak")');
  await page.keyboard.press('x');
  await page.waitForSelector('.chip', { state: 'detached' });
  await page.keyboard.press('V');
  await page.waitForSelector('.view canvas');
  await page.keyboard.press('m');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.trail');
  await page.keyboard.press('Escape');
  await page.waitForSelector('.trail', { state: 'detached' });
  await page.keyboard.press(']');
  await waitUntil(page, () => location.hash.includes('file=1'));
  assert.deepEqual(browser.errors, []);
});

test('controls have names for a screen reader', async () => {
  for (const hash of ['view=stacks&select=s3', 'view=flame', 'file=3&view=comparison&object=77', 'file=5&view=snapshots', 'file=5&view=snapshots&part=comparison&between=1']) {
    await show(hash);
    const nameless = await page.evaluate(() => [...document.querySelectorAll('button, input, select, canvas, [role=grid], [role=treegrid], [role=separator]')]
      .filter((element) => !(element.getAttribute('aria-label') || element.textContent.trim() || element.labels?.length || element.closest('label')))
      .map((element) => element.outerHTML.slice(0, 120)));
    assert.deepEqual(nameless, []);
  }
});

/** Returns the visible rows from the top, and in the order of the document. */
const rowsSeen = () => page.evaluate(() => {
  const table = document.querySelector('.table').getBoundingClientRect();
  const rows = [...document.querySelectorAll('.rows-block .row')].filter((row) => {
    const box = row.getBoundingClientRect();
    return box.bottom > table.top && box.top < table.bottom;
  });
  return rows.map((row) => ({ index: Number(row.getAttribute('aria-rowindex')), top: row.getBoundingClientRect().top, exact: row.children[1]?.title, isWaiting: row.querySelector('.is-waiting') !== null }));
});
/** Returns the hover text of invented row `index` (2 is the first). */
const exactOf = (index) => `${String(Math.round(2 ** 30 / index)).replace(/\B(?=(\d{3})+$)/g, ',')} bytes`;

test('a scrolled table shows the rows of the place, in order, once it stands still', async () => {
  await page.goto('about:blank');
  await show('view=stacks');
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  for (const px of [130, 260, 390, 100000, 100130, 12_000_000, 0]) {
    await page.evaluate((px) => { document.querySelector('.table').scrollTop = px; }, px);
    await page.waitForTimeout(40);
  }
  for (const px of [50_000, 3_000_000, 12_000_000, 70, 0]) {
    await page.evaluate((px) => { document.querySelector('.table').scrollTop = px; }, px);
    await page.waitForTimeout(500);
    const rows = await rowsSeen();
    assert.ok(rows.length > 15, `${rows.length} rows at ${px}`);
    for (const [at, row] of rows.entries()) {
      assert.equal(row.isWaiting, false);
      assert.equal(row.exact, exactOf(row.index), `row ${row.index} at ${px}`);
      if (at > 0) assert.deepEqual([row.index, Math.round(row.top - rows[at - 1].top)], [rows[at - 1].index + 1, Math.round(rows[1].top - rows[0].top)]);
    }
    if (px === 0) assert.equal(rows[0].index, 2);
    if (px === 12_000_000) assert.equal(rows.at(-1).index, 1_000_001);
  }
});

test('cells stand below the heads of their columns, as wide as they were drawn', async () => {
  const misplaced = () => page.evaluate(() => {
    const edges = (row) => [...row.children].map((cell) => [cell.getBoundingClientRect().left, cell.getBoundingClientRect().right].map(Math.round).join());
    const head = edges(document.querySelector('.row.is-head')).join(' ');
    return [...document.querySelectorAll('.rows-block .row[aria-rowindex]')].filter((row) => edges(row).join(' ') !== head).length;
  });
  for (const view of ['file=0&view=stacks', 'file=0&view=leaks', 'file=2&view=summary', 'file=3&view=containment']) {
    await page.goto('about:blank');
    await show(view);
    await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
    assert.equal(await misplaced(), 0, view);
  }
  await page.goto('about:blank');
  await show('view=stacks');
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  const before = await page.evaluate(() => document.querySelector('.row.is-head .cell').offsetWidth);
  const handle = await page.locator('.row.is-head .resize').first().boundingBox();
  await page.mouse.move(handle.x + 2, handle.y + 5);
  await page.mouse.down();
  await page.mouse.move(handle.x + 62, handle.y + 5, { steps: 4 });
  await page.mouse.up();
  await page.waitForTimeout(100);
  assert.equal(await page.evaluate(() => document.querySelector('.row.is-head .cell').offsetWidth), before + 60);
  assert.equal(await misplaced(), 0);
});

test('while a table scrolls, what is not drawn yet is not seen, nor found by a screen reader', async () => {
  await page.goto('about:blank');
  await show('view=stacks');
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  const bad = await page.evaluate(async () => {
    const bad = [];
    for (let step = 0; step < 40; step += 1) {
      document.querySelector('.table').scrollTop += step % 5 === 4 ? 90_000 : 130;
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
      const table = document.querySelector('.table').getBoundingClientRect();
      const seen = new Set();
      for (const row of document.querySelectorAll('.rows-block .row')) {
        const index = row.getAttribute('aria-rowindex');
        const box = row.getBoundingClientRect();
        if (index === null && (row.getAttribute('aria-hidden') !== 'true' || box.bottom > table.top)) bad.push(`a row of before is seen in step ${step}`);
        if (index !== null && seen.has(index)) bad.push(`row ${index} stands twice in step ${step}`);
        if (index !== null) seen.add(index);
      }
    }
    return bad;
  });
  assert.deepEqual(bad, []);
});

test('rows are copied as text', async () => {
  await page.goto('about:blank');
  await show('view=stacks');
  await page.click('.row[aria-rowindex="2"]');
  await page.keyboard.down('Shift');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.up('Shift');
  await page.keyboard.press('Control+c');
  await page.waitForSelector('.table-menu :text("2 rows copied")');
  const text = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(text.split('\n')[0], /^ *% +Live bytes +Live/);
  assert.equal(text.split('\n').length, 3);
  assert.match(text.split('\n')[1], /50\.0 +512\.0 MiB/);
});

test('a table is saved as CSV with exact numbers', async () => {
  await show('file=3&view=comparison');
  await page.click('.table-menu .button');
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Save as CSV')]);
  const stream = await download.createReadStream();
  let text = '';
  for await (const part of stream) text += part;
  const lines = text.trim().split('\r\n');
  assert.equal(lines.length, 3001);
  assert.match(lines[0], /^class,new_count,deleted_count,count_delta,new_bytes/);
  assert.match(lines[1], /,0,0,0,1000000,100000,900000$/);
});

test('the page fits from 1280 to 3840 pixels and at 150 % zoom', async () => {
  for (const [width, height] of [[1280, 800], [3840, 2160], [853, 533]]) {
    await page.setViewportSize({ width, height });
    for (const hash of ['view=stacks&select=s3', 'view=flame', 'file=3&view=comparison&object=77', 'file=5&view=snapshots', 'file=5&view=snapshots&part=comparison&between=1']) {
      await show(hash);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(wide <= 0, `${hash} at ${width}: ${wide} pixels too wide`);
      assert.ok(await page.evaluate(() => document.querySelector('.view').clientHeight > 120), `${hash} at ${width}: the view has no room`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
});


test('what is held stands still, and what a session is asked for is said', async () => {
  await show('file=5&view=stacks');
  await page.waitForSelector('.session-bar:has-text("recording")');
  await page.keyboard.press('h');
  await page.waitForSelector('#hold[aria-pressed=true]');
  await page.fill('.session-bar input', 'half <b>way</b>');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.session-bar :text("marked: half <b>way</b>")');
  await page.click('.session-bar button:has-text("Snapshot")');
  await page.waitForSelector('.session-bar :text("snapshot 6:")');
  // One click does not end a recording.
  const before = mock.asked.length;
  await page.click('.session-bar button:has-text("Stop")');
  assert.equal(mock.asked.slice(before).some(({ path }) => path === '/api/session/stop'), false);
  await page.waitForSelector('.message:has-text("2 events lost so far")');
  assert.deepEqual(browser.errors, []);
});

test('a change of the filter is one request, whatever panels show it', async () => {
  for (const [at, view] of ['overview', 'stacks', 'flame', 'histograms'].entries()) {
    await show(`file=0&view=${view}`);
    // Reading has ended by the second request for the files.
    await page.waitForTimeout(100);
    const before = mock.asked.length;
    await page.evaluate((hash) => { location.hash = hash; }, `file=0&view=${view}&size=${at + 1}K&size=1M`);
    await page.waitForLoadState('networkidle');
    await page.waitForTimeout(200);
    const asked = mock.asked.slice(before).filter(({ path }) => path !== '/api/files');
    const sent = asked.filter(({ isInBatch }) => !isInBatch);
    assert.deepEqual(sent.map(({ path }) => path), ['/api/panels'], `${view}: ${JSON.stringify(asked.map(({ path }) => path))}`);
    assert.ok(asked.some(({ path, isInBatch }) => isInBatch && path === '/api/timeline'), view);
    assert.ok(asked.length >= 3, `${view}: the timeline and at least one panel`);
  }
});

test('a timeline that is not known yet says so and has no amounts', async () => {
  let release;
  const isReleased = new Promise((resolve) => { release = resolve; });
  const holdBack = async (route) => { await isReleased; await route.continue(); };
  const hasAmounts = () => {
    const canvas = document.querySelector('.timeline canvas');
    // Left of the plot, above the times.
    const { data } = canvas.getContext('2d').getImageData(0, 0, Math.round(30 * devicePixelRatio), canvas.height - Math.round(40 * devicePixelRatio));
    return data.some((value) => value > 0);
  };
  await page.goto('about:blank');
  await page.route(/api\/(timeline|panels)/, holdBack);
  await page.goto(`${mock.url}#file=0&view=overview`);
  await page.waitForSelector('.timeline :text("reading events…")');
  await page.waitForTimeout(100);
  assert.equal(await page.evaluate(hasAmounts), false);
  assert.equal(await page.locator('.timeline :text("loading…")').count(), 0);
  release();
  await page.waitForSelector('.timeline-waits', { state: 'detached' });
  await waitUntil(page, hasAmounts);
  await page.unroute(/api\/(timeline|panels)/);
  assert.deepEqual(browser.errors, []);
});

test('where all memory is stands first, follows the pointer on the timeline, and each piece is a link', async () => {
  await page.goto('about:blank');
  await show('view=overview');
  await page.waitForSelector('.where-pieces li');
  assert.equal(await page.evaluate(() => document.querySelector('.overview').firstElementChild.classList.contains('where')), true, 'the first card');
  const asked = () => mock.asked.findLast((one) => one.path === '/api/where').body.filter;
  assert.deepEqual(asked(), {});
  const amounts = () => page.locator('.where-pieces .amount').allTextContents();
  const atPeak = await amounts();
  // The pieces' widths are their shares.
  const shares = await page.evaluate(() => { const all = [...document.querySelectorAll('.where-bar button')].map((one) => one.getBoundingClientRect().width); const sum = all.reduce((a, b) => a + b, 0); return all.map((one) => one / sum); });
  assert.ok(Math.abs(shares[0] - 0.4 / 0.94) < 0.02, String(shares));
  const box = await page.locator('.timeline canvas').boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 50);
  await waitUntil(page, (first) => !document.querySelector('.where.is-old') && document.querySelector('.where-pieces .amount').textContent !== first, atPeak[0]);
  assert.match(asked().at, /^\d+ns$|^\d+us$|^\d+ms$/);
  await page.mouse.move(box.x + 50, box.y + box.height + 200);
  await waitUntil(page, (first) => document.querySelector('.where-pieces .amount').textContent === first, atPeak[0]);
  await page.click('.where-pieces button:has-text("ParseTopLevelDecl")');
  await waitUntil(page, () => location.hash.includes('view=stacks') && location.hash.includes('require_frames=') && location.hash.includes('at=peak'));
  assert.equal(await page.evaluate(() => window.markupRan), undefined);
  // Other filters choose a part of the blocks: the card would tell something else.
  await show('view=overview&size=1K&size=2K');
  await page.waitForSelector('.totals');
  assert.equal(await page.locator('.where').count(), 0);
  assert.deepEqual(browser.errors, []);
});

test('a finding opens as a story, in the order that leads to the mend, and is copied as one Markdown', async () => {
  await page.goto('about:blank');
  await show('view=overview');
  await page.click('.finding button:has-text("The whole story")');
  await page.waitForSelector('.story .examples li');
  assert.deepEqual(await page.locator('.story h2').allTextContents(), ['1. How it came', '2. The lines', '3. Blocks of it', '4. Who holds it', '5. What it will cost', '6. A test against it']);
  assert.equal(await page.locator('.examples li').count(), 3);
  await page.click('.story button:has-text("Copy as Markdown")');
  await page.waitForSelector('.story :text("copied")');
  const text = await page.evaluate(() => navigator.clipboard.readText());
  const at = ['**How it came**', '**The lines**', '**Blocks of it**', '**Who holds it**', '**A test against it**'].map((title) => text.indexOf(title));
  assert.ok(at.every((place, number) => place > (at[number - 1] ?? 0)), text);
  assert.match(text, /heapr run --fail-on leak -- /);
  // Back leads to all findings.
  await page.goBack();
  await page.waitForSelector('.where-pieces');
  assert.equal(await page.locator('.story').count(), 0);
  assert.equal(await page.evaluate(() => window.markupRan), undefined);
  assert.deepEqual(browser.errors, []);
});

test('builds are compared by function, with one sentence, columns for more builds and pairs by hand', async () => {
  await page.goto('about:blank');
  await show('view=compare');
  await page.waitForSelector('.builds-sentence:has-text("than remember did")');
  await page.waitForSelector('.rows-block .row .badge:has-text("renamed")');
  const sides = () => mock.asked.findLast((one) => one.path === '/api/diff-functions').body;
  await page.selectOption('select[aria-label="Add a build"]', { label: 'live.heapr' });
  await waitUntil(page, () => location.hash.includes('more=5'));
  await page.waitForSelector('[role=columnheader]:has-text("live.heapr")');
  assert.deepEqual(sides().sides.map((side) => side.file), [1, 0, 5]);
  await page.click('.rows-block .row[aria-rowindex="2"]');
  await page.waitForSelector('.builds-side .stack-frames li');
  assert.equal(await page.locator('.builds-side').count(), 2, 'both sources beside each other');
  await page.click('.rows-block .row[aria-rowindex="5"]');
  await page.waitForSelector('.builds-side h3:has-text("holds nothing here")');
  assert.deepEqual(browser.errors, []);
});

test('flame graph and call tree fold what is not the program\'s, and show it at a switch', async () => {
  await page.goto('about:blank');
  await show('view=tree');
  await page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  await page.click('.rows-block .row[aria-rowindex="2"]');
  await page.keyboard.press('ArrowRight');
  await waitUntil(page, () => [...document.querySelectorAll('.rows-block .row')].some((row) => / \+\d+/.test(row.textContent)));
  await page.click('label:has-text("library frames") input');
  await waitUntil(page, () => location.hash.includes('libraries=1') && !document.querySelector('.table.is-old'));
  await waitUntil(page, () => ![...document.querySelectorAll('.rows-block .row')].some((row) => / \+\d+/.test(row.textContent)));
  await show('view=flame');
  await page.waitForSelector('.flame canvas');
  await page.waitForSelector('label:has-text("library frames")');
  // One image is collapsed by hand, and shown again.
  await show('view=flame&libraries=1');
  await page.locator('.flame canvas').focus();
  await page.keyboard.press('ArrowUp');
  await page.waitForSelector('.selection button:has-text("Zoom")');
  const image = await page.textContent('.selection .quiet');
  await page.click(`.selection button:text-is("Collapse ${image}")`);
  await page.waitForSelector(`.chip:has-text("${image} collapsed")`);
  await page.locator('.flame canvas').focus();
  await page.keyboard.press('ArrowUp');
  await waitUntil(page, (image) => document.querySelector('.selection strong')?.textContent.startsWith(`${image} +`), image);
  await show(`${new URL(page.url()).hash.slice(1)}&view=tree&select=`);
  await page.waitForSelector('.rows-block .row');
  await page.click('.chip:has-text("collapsed")');
  await page.waitForSelector('.chip:has-text("collapsed")', { state: 'detached' });
  assert.ok(!page.url().includes('collapsed='));
  assert.deepEqual(browser.errors, []);
});

test('the address space is played over the snapshots, with whose blocks keep pages', async () => {
  await page.goto('about:blank');
  await show('file=5&view=snapshots&part=pages&number=3');
  await page.waitForSelector('.page-strip canvas');
  assert.ok((await page.textContent('.resident-lines')).includes('14 of 900 B'));
  await page.click('button:has-text("Play")');
  await waitUntil(page, () => location.hash.includes('number=5'));
  await page.waitForSelector('button[aria-pressed="false"]:has-text("Play")');
  assert.ok(mock.asked.some((one) => one.path === '/api/native/pages' && one.body.number === 4), 'each snapshot is shown');
  assert.equal(await page.evaluate(() => window.markupRan), undefined);
  assert.deepEqual(browser.errors, []);
});
