// Native snapshots in a trace, and a session while it records, on the real server, compared with
// the command line.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from './browser.mjs';
import { HEAPR, run, runShown } from './heapr.mjs';
import { viewed } from './viewed.mjs';

/** Keeps a block every two milliseconds, and churns. */
const GROW = `
import sys, time, ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
end = time.time() + float(sys.argv[1])
while time.time() < end:
    libc.malloc(1000)
    libc.free(libc.malloc(50))
    time.sleep(0.002)
`;
/** Keeps five million bytes, and then does nothing. */
const STILL = 'import time\nkept = [bytearray(100000) for _ in range(50)]\ntime.sleep(120)\n';
const NAME = `e2e-${process.pid}`;
const QUIET = `${NAME}-still`;
const shown = viewed(async (work) => {
  writeFileSync(join(work.folder, 'grow.py'), GROW);
  await run(work, HEAPR, ['run', '--quiet', '--snapshot-every', '0.4', '-o', 'grow.heapr', '--', '/usr/bin/python3', 'grow.py', '3.2']);
  await run(work, HEAPR, ['run', '--quiet', '--graph-at-exit', '-o', 'graph.heapr', '--', '/usr/bin/python3', 'grow.py', '0.4']);
  // The program inherits descriptors, which must not be the pipes that are waited for here.
  await run(work, `'${HEAPR}' start --quiet -o live.heapr ${NAME} -- /usr/bin/python3 grow.py 120 > /dev/null 2>&1 < /dev/null`, [], { shell: true });
  writeFileSync(join(work.folder, 'still.py'), STILL);
  await run(work, `'${HEAPR}' start --quiet -o still.heapr ${QUIET} -- /usr/bin/python3 still.py > /dev/null 2>&1 < /dev/null`, [], { shell: true });
  return ['grow.heapr', NAME, 'graph.heapr', QUIET];
});
const { show, shownCommand } = shown;
after(() => Promise.all([NAME, QUIET].map((name) => run(shown.work, HEAPR, ['cancel', name]).catch(() => {}))));

/** Returns the titles (exact values) of the first row. */
const firstRow = async () => {
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"] .cell:nth-child(3)');
  return shown.page.locator('.rows-block .row[aria-rowindex="2"] .cell').evaluateAll((cells) => cells.map((cell) => cell.title));
};
const bytes = (count) => `${count.toLocaleString('en')} bytes`;

// It comes first: its program runs for two minutes.
test('a session is shown as it grows, marked, held, snapped and ended', async () => {
  await show('file=1&view=stacks');
  await shown.page.waitForSelector('.session-bar');
  const live = async () => Number((await shown.page.getAttribute('.session-bar span[title*=bytes]', 'title')).replace(/ bytes.*/, '').replaceAll(',', ''));
  const before = await live();
  await waitUntil(shown.page, (before) => Number(document.querySelector('.session-bar span[title*=bytes]').title.replace(/ bytes.*/, '').replaceAll(',', '')) > before, before);
  const first = Number((await firstRow())[1].replace(/ bytes.*/, '').replaceAll(',', ''));
  await waitUntil(shown.page, (first) => Number(document.querySelector('.rows-block .row[aria-rowindex="2"] .cell:nth-child(2)').title.replace(/ bytes.*/, '').replaceAll(',', '')) > first, first);
  await shown.page.fill('.session-bar input', 'half way');
  await shown.page.keyboard.press('Enter');
  await shown.page.waitForSelector('.session-bar :text("marked: half way")');
  await shown.page.click('.session-bar button:has-text("Snapshot")');
  await shown.page.waitForSelector('.session-bar :text("snapshot 1:")');
  await show('file=1&view=snapshots');
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"] .cell:nth-child(3)');
  await shown.page.click('#hold');
  await shown.page.waitForSelector('#hold:has-text("Follow")');
  await shown.page.click('#hold');
  await shown.page.click('.session-bar button:has-text("Stop")');
  await shown.page.click('button:has-text("End the recording?")');
  await shown.page.waitForSelector('.session-bar:has-text("ended")');
  await show('file=1&view=stacks');
  const report = await runShown(shown.work, await shownCommand());
  const row = await firstRow();
  assert.equal(row[1], bytes(report.groups[0].outstanding_bytes));
  assert.deepEqual(shown.browser.errors, []);
});

test('the timeline of a still session runs on to now, with what is live until then', async () => {
  await show('file=3');
  await shown.page.waitForSelector('.timeline canvas');
  const end = () => shown.page.evaluate(() => / over ([^,]+)/.exec(document.querySelector('.timeline canvas').getAttribute('aria-label'))?.[1]);
  for (let second = 0; second < 3; second += 1) {
    const before = await end();
    await waitUntil(shown.page, (before) => / over ([^,]+)/.exec(document.querySelector('.timeline canvas').getAttribute('aria-label'))[1] !== before, before);
  }
  await waitUntil(shown.page, () => !/loading/.test(document.querySelector('.timeline').textContent));
  assert.equal(await shown.page.locator('.session-bar :text("the views show the first")').count(), 0, 'it is not said to lag');
  const box = await shown.page.locator('.timeline canvas').boundingBox();
  await shown.page.mouse.move(box.x + box.width - 8, box.y + 60);
  await waitUntil(shown.page, () => document.querySelector('.tooltip'));
  const told = await shown.page.textContent('.tooltip');
  assert.match(told, /[45]\.\d\d MiB/, `what is live now: ${told}`);
  assert.deepEqual(shown.browser.errors, []);
});

test('a native snapshot has the numbers of heapr snapshot summary', async () => {
  await show('view=snapshots');
  const printed = await runShown(shown.work, await shownCommand());
  const row = await firstRow();
  assert.equal(row[1], bytes(printed.rows[0].block_bytes));
  assert.equal(row[2], printed.rows[0].block_count.toLocaleString('en'));
  await shown.page.locator('.row[aria-rowindex="2"]').click();
  await shown.page.waitForSelector('.stack-frames li');
  assert.deepEqual(shown.browser.errors, []);
});

test('two native snapshots are compared as heapr snapshot diff compares them', async () => {
  await show('view=snapshots&part=comparison');
  const command = await shownCommand();
  assert.match(command, /^heapr snapshot diff .*--snapshots \d+ \d+/);
  const printed = await runShown(shown.work, command);
  const row = await firstRow();
  assert.equal(row[0], bytes(printed.rows[0].bytes_delta));
  assert.ok(printed.rows[0].bytes_delta > 100_000);
  await shown.page.check('text=the snapshots between, too');
  await shown.page.waitForSelector('.growth');
  // For more than two snapshots, steady growth comes first.
  assert.equal(await shown.page.inputValue('[aria-label="Order"]'), 'steady');
  await waitUntil(shown.page, () => !document.querySelector('.table.is-old'));
  const heads = await shown.page.locator('.row.is-head .cell').allTextContents();
  const steady = await shown.page.locator('.rows-block .row[aria-rowindex="2"] .cell').nth(heads.findIndex((head) => head.startsWith('Steady'))).textContent();
  assert.ok(parseFloat(steady) > 50, steady);
});

test('the suspect is what keeps its blocks', async () => {
  await show('view=snapshots&part=suspects');
  const printed = await runShown(shown.work, await shownCommand());
  await firstRow();
  assert.equal(await shown.page.locator('.rows-block .row[aria-rowindex="2"] .verdict').textContent(), printed.suspects[0].confidence);
  assert.ok(['high', 'medium'].includes(printed.suspects[0].confidence), printed.suspects[0].confidence);
});

test('treemap, statistics and the flame graph of a native snapshot show something', async () => {
  await show('view=snapshots&part=treemap');
  await shown.page.waitForSelector('.treemap canvas');
  await show('view=snapshots&part=statistics');
  await shown.page.waitForSelector('.card:has-text("Heaps") td:has-text("malloc")');
  await shown.page.click('.compare button:has-text("Flame graph")');
  await shown.page.waitForSelector('.chip:has-text("snapshot")');
  assert.match(await shownCommand(), /--snapshot \d+/);
  assert.deepEqual(shown.browser.errors, []);
});

test('the address space over time has the live bytes of heapr report, and is played', async () => {
  await show('view=place');
  await shown.page.waitForSelector('.page-strip canvas');
  const { moments } = await shown.page.evaluate(() => fetch('/api/place', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"file":0}' }).then((answer) => answer.json()));
  const moment = moments[30];
  const printed = JSON.parse(await run(shown.work, HEAPR, ['report', 'grow.heapr', '--at', `${moment.time_ns}ns`, '--heap', 'malloc', '--totals', '--format', 'json']));
  assert.equal(moment.live_bytes, printed.totals.outstanding_bytes);
  assert.equal(moment.cell_live_bytes.reduce((sum, bytes) => sum + bytes, 0), moment.live_bytes);
  await shown.page.click('.view button:has-text("Play")');
  await waitUntil(shown.page, () => Number(document.querySelector('.resident input[type=range]').value) > 1 && document.querySelector('.resident input[type=range]').value !== '47');
  assert.deepEqual(shown.browser.errors, []);
});

test('a native graph has holders, leaked blocks and objects with retainers, as heapr prints them', async () => {
  await show('file=2&view=snapshots&part=holders');
  assert.deepEqual(await shown.page.locator('.file-tab').allTextContents(), ['grow.heapr', 'live.heapr', 'graph.heapr', 'still.heapr']);
  const command = await shownCommand();
  assert.match(command, /^heapr snapshot holders \S*graph\.heapr --snapshot \d+$/);
  const printed = await runShown(shown.work, command);
  const row = await firstRow();
  assert.deepEqual(row.slice(1, 3), [bytes(printed.holders[0].retained_bytes), printed.holders[0].retained_count.toLocaleString('en')]);
  await show('file=2&view=snapshots&part=leaks');
  const leaks = await runShown(shown.work, await shownCommand());
  const leaked = await firstRow();
  assert.ok(leaks.groups.some((group) => leaked[1] === bytes(group.bytes) && leaked[3] === bytes(group.retained_bytes)), leaked.join());
  await show('file=2&view=snapshots&part=dominators');
  assert.match(await shownCommand(), /^heapr snapshot dominators \S*graph\.heapr @/);
  await shown.page.locator('.row[aria-rowindex="2"]').click();
  await shown.page.waitForSelector('.object-pane .object-title');
  await show('file=2&view=snapshots&part=objects');
  await shown.page.waitForSelector('.class-name');
  assert.equal(await shown.page.locator('.filter-row .command').count(), 0, 'no command lists the types of a graph');
  assert.deepEqual(shown.browser.errors, []);
});
