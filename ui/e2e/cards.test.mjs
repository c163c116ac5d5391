// Cards, legends and pictures with invented answers: what is told beside the amounts.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
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
beforeEach(() => {
  browser.errors.length = 0;
});
afterEach(async () => {
  mock.changed.clear();
  assert.deepEqual(browser.errors, []);
});

async function show(hash) {
  await page.goto('about:blank');
  await page.goto(`${mock.url}#${hash}`);
  await page.waitForSelector('.tabs');
}

/** Returns the share of a canvas' pixels that have one of these colours, which the page's style names. */
function shareOf(canvas, names) {
  return page.evaluate(([canvas, names]) => {
    const colours = names.map((name) => {
      const text = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
      return [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16)).join();
    });
    const { width, height } = document.querySelector(canvas);
    const { data } = document.querySelector(canvas).getContext('2d').getImageData(0, 0, width, height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255 && colours.includes(`${data[at]},${data[at + 1]},${data[at + 2]}`)) count += 1;
    return count / (width * height);
  }, [canvas, names]);
}

test('a running session keeps its findings, and says up to when they are told', async () => {
  mock.changed.set('/api/findings', (answer) => ({ ...answer, until_ns: 2e9 }));
  await show('file=5&view=overview');
  await page.waitForSelector('.finding .sentence');
  assert.match(await page.textContent('.findings'), /Told of the first 2\.000 s; it is looked for again/);
  // The next state of the session is asked for: what was told stays until it is answered.
  let release;
  mock.held.set('/api/findings', new Promise((resolve) => { release = resolve; }));
  const from = mock.asked.length;
  mock.changed.set('/api/files', (answer) => ({ ...answer, files: answer.files.map((file) => (file.file === 5 ? { ...file, generation: 4 } : file)) }));
  while (!mock.asked.slice(from).some((one) => one.path === '/api/findings')) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(await page.locator('.finding .sentence').count(), 1);
  assert.equal(await page.locator('.findings.is-waiting').count(), 0);
  mock.held.delete('/api/findings');
  release();
});

test('what lags behind a running session is said, and its end is not told before it comes', async () => {
  mock.changed.set('/api/files', (answer) => ({ ...answer, files: answer.files.map((file) => (file.file === 5 ? { ...file, session: { ...file.session, status: { ...file.session.status, duration_ns: file.session.shown_until_ns + 6e9 } } } : file)) }));
  await show('file=5&view=overview');
  await page.waitForSelector('.session-bar :text("the views show the first 4.698 s")');
  await page.waitForSelector('.total:has-text("Live after 4.698 s")');
  assert.ok(!(await page.textContent('.overview')).includes('at the end'), 'nothing has ended');
});

test('an estimate has its interval on the curve of a finding', async () => {
  await show('view=overview');
  await page.waitForSelector('.finding-curve polyline');
  assert.equal(await page.locator('.finding-curve .veil').count(), 0, 'what was counted has none');
  mock.changed.set('/api/findings', (answer) => ({ ...answer, findings: answer.findings.map((finding) => ({ ...finding, curve_plus_minus: finding.curve.map(() => 5e7) })) }));
  await show('view=overview');
  await page.waitForSelector('.finding-curve .veil', { state: 'attached' });
  assert.match(await page.textContent('.finding-curve figcaption'), /± 47\.7 MiB at most/);
});

test('a row that sums several lines names all of them', async () => {
  const withLines = (answer) => ({ ...answer, groups: answer.groups.map((group, at) => (at === 0 ? { ...group, own: { ...group.frames[0], file: '/src/server.cc', line: 12, place: 0 }, own_lines: [10, 12] } : group)) });
  mock.changed.set('/api/report', withLines);
  mock.changed.set('/api/leaks', withLines);
  for (const view of ['stacks', 'leaks']) {
    await show(`view=${view}`);
    await page.waitForSelector('.rows-block .row[aria-rowindex="2"]:has-text("server.cc, 2 lines: 10, 12")');
  }
  await show('view=stacks');
  await page.click('.rows-block .row[aria-rowindex="2"]');
  await page.waitForSelector('.stack-frames :text("the row sums lines 10, 12")');
  assert.deepEqual(await page.locator('.stack-frames .source .is-line .line-number').allTextContents(), ['10', '12']);
});

test('every name of a legend is whole or told as cut, and none is out of reach', async () => {
  const names = Array.from({ length: 8 }, (_, at) => `libarrow_compute_kernels_of_a_long_name_${at}.so.${at}`);
  mock.changed.set('/api/timeline', (answer) => ({ ...answer, series: names.map((name, at) => ({ ...answer.series[0], id: `i${at}`, name })) }));
  for (const width of [1280, 1440, 3840]) {
    await page.setViewportSize({ width, height: 800 });
    await show('view=stacks&by=image');
    await waitUntil(page, () => document.querySelectorAll('.legend li').length >= 10);
    const items = await page.evaluate(() => {
      const legend = document.querySelector('.legend');
      return [...legend.querySelectorAll('li')].map((item) => {
        // Only up and down: nobody can scroll it sideways.
        item.scrollIntoView({ block: 'nearest' });
        const [box, around] = [item.getBoundingClientRect(), legend.getBoundingClientRect()];
        const text = item.querySelector('button > span');
        return {
          text: item.textContent, isInside: legend.scrollLeft === 0 && box.left >= around.left - 1 && box.right <= around.right + 1 && box.top >= around.top - 1 && box.bottom <= around.bottom + 1,
          isCut: item.scrollWidth > item.clientWidth + 1 || (text !== null && text.scrollWidth > text.clientWidth + 1), shownPx: (text ?? item).clientWidth, title: item.querySelector('button')?.title ?? '',
        };
      });
    });
    for (const { text, isInside, isCut, shownPx, title } of items) {
      assert.ok(isInside, `${text} at ${width} is out of reach`);
      if (isCut) assert.ok(shownPx > 100 && title.includes(text), `${text} at ${width}: ${shownPx} pixels, ${title}`);
    }
    assert.deepEqual(items.slice(-2).map(({ text, isCut }) => [text, isCut]), [['RSS', false], ['rest', false]]);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
});

test('resident memory far above what is live leaves its area high enough to be read, and is told', async () => {
  const area = async (times) => {
    mock.changed.set('/api/timeline', (answer) => ({ ...answer, rss: answer.rss.map((one) => ({ ...one, rss_bytes: one.rss_bytes.map((bytes) => bytes * times) })) }));
    await show('view=overview&by=none');
    await page.waitForSelector('.timeline-waits', { state: 'detached' });
    await waitUntil(page, () => !/loading/.test(document.querySelector('.timeline').textContent));
    await page.waitForTimeout(100);
    return shareOf('.timeline canvas', ['area']);
  };
  const [alone, beside, far] = [await area(0), await area(4), await area(400)];
  assert.ok(alone > 0.15, `${alone} of the picture is the area`);
  assert.ok(far > alone / 3 && Math.abs(far - beside) < 0.05, `${alone}, ${beside}, ${far}`);
});

test('a treemap of a heap has a colour for each large holder, and what is too small is no empty place', async () => {
  mock.changed.set('/api/snapshot/treemap', (answer) => ({ ...answer, nodes: { ...answer.nodes, value: answer.nodes.value.map((value, at) => (at === 0 ? value : value * 0.7)), self: answer.nodes.self.map((value, at) => (at === 0 ? value : value * 0.7)) } }));
  await show('file=2&view=treemap');
  await page.waitForSelector('.treemap canvas');
  await waitUntil(page, () => !/loading/.test(document.querySelector('.treemap').textContent));
  await page.waitForTimeout(100);
  const [empty, hatched] = [await shareOf('.treemap canvas', ['surface']), await shareOf('.treemap canvas', ['raised', 'line'])];
  assert.ok(empty < 0.12, `${empty} of the picture is empty`);
  assert.ok(hatched > 0.15, `${hatched} of the picture is striped`);
  const hues = await page.evaluate(() => {
    const { width, height } = document.querySelector('.treemap canvas');
    const { data } = document.querySelector('.treemap canvas').getContext('2d').getImageData(0, 0, width, height);
    const counts = new Map();
    for (let at = 0; at < data.length; at += 4) {
      const [red, green, blue] = data.slice(at, at + 3);
      const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)];
      if (most - least < 40) continue;
      const sixth = most === red ? ((green - blue) / (most - least) + 6) % 6 : most === green ? (blue - red) / (most - least) + 2 : (red - green) / (most - least) + 4;
      const hue = Math.round(sixth * 6);
      counts.set(hue, (counts.get(hue) ?? 0) + 1);
    }
    return [...counts.values()].filter((count) => count > width * height * 0.005).length;
  });
  // Seven holders: the smallest are a few pixels.
  assert.ok(hues >= 4 && hues <= 14, `${hues} colours`);
});

test('a long name in "Where it is" has further lines before it is cut', async () => {
  const label = 'clang::serialization::ASTReader::ReadDeclarationNameInfoOfTheWholeTranslationUnit, with what it calls';
  mock.changed.set('/api/where', (answer) => ({ ...answer, pieces: answer.pieces.map((piece, at) => (at === 0 ? { ...piece, label } : piece)) }));
  for (const [width, height] of [[1440, 900], [1920, 1080], [3840, 2160]]) {
    await page.setViewportSize({ width, height });
    await show('view=overview');
    await page.waitForSelector('.where-pieces li');
    const { isWhole, text } = await page.locator('.where-label').first().evaluate((one) => ({ isWhole: one.scrollHeight <= one.clientHeight + 1 && one.scrollWidth <= one.clientWidth + 1, text: one.textContent }));
    assert.deepEqual([isWhole, text], [true, label], `at ${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
});

test('a story names the holders of a snapshot with references, and leads to them', async () => {
  await show('file=5&view=overview&finding=0');
  await page.waitForSelector('.holders li');
  assert.deepEqual(mock.asked.findLast((one) => one.path === '/api/native/holders').body, { file: 5, number: 5, offset: 0, limit: 3 });
  const [shown, whole] = await page.locator('.examples p').first().evaluate((text) => [text.textContent, text.title]);
  assert.ok(/ActOn<…>\(…\)/.test(shown) && !shown.includes('unsigned long') && whole.includes('unsigned long'), `${shown} of ${whole}`);
  assert.match(await page.textContent('.holders'), /clang!cache0 3\.81 MiB in 900 blocks/);
  await page.click('.story button:has-text("Copy as Markdown")');
  await page.waitForSelector('.story :text("copied")');
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /\*\*Who holds it\*\*\n\n- clang!cache0 3\.81 MiB in 900 blocks\n/);
  await page.click('.holders button:has-text("clang!cache0")');
  await waitUntil(page, () => location.hash.includes('part=holders') && location.hash.includes('number=5') && location.hash.includes('match=clang%21cache0') && !location.hash.includes('finding='));
});
