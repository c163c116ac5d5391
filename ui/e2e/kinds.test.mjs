// Compares cells of the views with the command that each shows, over recordings of many kinds: exact,
// of a language, samples, snapshots alone, with references, another tool's file, a live session.
// HEAPR_TRACES=FILE:FILE… compares these files instead.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { spawn } from 'node:child_process';
import { waitUntil } from './browser.mjs';
import { HEAPR, run, runShown } from './heapr.mjs';
import { viewed } from './viewed.mjs';

const given = (process.env.HEAPR_TRACES ?? '').split(':').filter(Boolean);
const MASSIF = `desc: (none)
cmd: ./server
time_unit: i
#-----------
snapshot=0
#-----------
time=0
mem_heap_B=0
mem_heap_extra_B=0
mem_stacks_B=0
heap_tree=empty
#-----------
snapshot=1
#-----------
time=90000
mem_heap_B=5000
mem_heap_extra_B=40
mem_stacks_B=0
heap_tree=peak
n2: 5000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n1: 4000 0x1091A5: remember(int) (server.cc:12)
  n0: 4000 0x1091C5: main (server.cc:30)
 n0: 1000 0x1091D5: load(int) (server.cc:20)
`;
let live;
const shown = viewed(async (work) => {
  if (given.length > 0) return given;
  const path = (name) => join(work.folder, name);
  writeFileSync(path('a.json'), JSON.stringify(Array.from({ length: 3000 }, (_, id) => ({ id, list: [id, 'x'.repeat(id % 90)] }))));
  writeFileSync(path('cache.py'), 'import json\ndef features(size):\n    return bytearray(size)\nkept = [features(5000 + number) for number in range(300)]\n');
  writeFileSync(path('massif.out.1'), MASSIF);
  const jq = ['--', 'jq', '-c', 'map(.list) | flatten | length', 'a.json'];
  await run(work, HEAPR, ['run', '--quiet', '-o', 'exact.heapr', ...jq]);
  await run(work, HEAPR, ['run', '--quiet', '-o', 'python.heapr', '--', '/usr/bin/python3', 'cache.py']);
  await run(work, HEAPR, ['run', '--quiet', '--sample', '2K', '-o', 'samples.heapr', ...jq]);
  await run(work, HEAPR, ['run', '--quiet', '--mode', 'snapshot', '--snapshot-at-exit', '-o', 'snapshots.heapr', ...jq]);
  await run(work, HEAPR, ['run', '--quiet', '--graph-at-exit', '-o', 'graph.heapr', ...jq]);
  writeFileSync(path('b.json'), JSON.stringify(Array.from({ length: 4000 }, (_, id) => ({ id, list: [id, id, 'x'.repeat(id % 120)] }))));
  await run(work, HEAPR, ['run', '--quiet', '-o', 'later.heapr', ...jq.slice(0, -1), 'b.json']);
  live = spawn('/usr/bin/python3', ['-c', 'import time\nkept = []\nfor number in range(100000):\n    kept.append(bytearray(3000))\n    time.sleep(0.005)\n'], { stdio: 'ignore' });
  await run(work, HEAPR, ['start', 'live', '--quiet', '--pid', String(live.pid), '-o', 'live.heapr']);
  return ['exact.heapr', 'python.heapr', 'samples.heapr', 'snapshots.heapr', 'graph.heapr', 'later.heapr', 'massif.out.1', 'live'];
});
after(async () => {
  if (live) await run(shown.work, HEAPR, ['stop', '--quiet', 'live']).catch(() => {});
  live?.kill('SIGKILL');
});

const AMOUNTS = [['Live bytes', 'outstanding_bytes'], ['Live', 'outstanding_count'], ['At peak', 'peak_bytes'], ['Total', 'total_bytes'], ['Allocs', 'total_count']];

/** Returns the numbers of the visible rows; null for an amount that is unknown. */
async function seenRows(columns) {
  await waitUntil(shown.page, () => document.querySelector('.rows-block .row[aria-rowindex="2"], .table .empty, .message.is-error') && !document.querySelector('.table.is-old, .rows-block .is-waiting'));
  return shown.page.evaluate((columns) => {
    const heads = [...document.querySelectorAll('.table [role=columnheader]')].map((head) => head.textContent.replace(/ [▾▴]$/, ''));
    const number = (text) => (/^\s*unknown/.test(text) ? null : Number(/^[\d,]+/.exec(text)?.[0].replaceAll(',', '')));
    return [...document.querySelectorAll('.rows-block .row[aria-rowindex]')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => columns.map((column) => {
      const cell = row.children[heads.indexOf(column)];
      return number(cell.title || cell.textContent);
    }));
  }, columns);
}

/** Rows of stacks that differ in lines alone are one row of the page: they are summed by their names. */
function byNames(groups) {
  const sums = new Map();
  for (const group of groups) {
    // The line of a language's function is a part of its frame.
    const key = group.frames.map((frame) => `${frame.module} ${frame.symbol ?? frame.offset} ${frame.module?.includes('/') === false ? `${frame.file}:${frame.line}` : ''}`).join('\n');
    const sum = sums.get(key) ?? {};
    for (const [, name] of AMOUNTS) sum[name] = group[name] === null ? null : (sum[name] ?? 0) + group[name];
    sums.set(key, sum);
  }
  return [...sums.values()];
}

test('cells of each view are those of the command, for each kind of recording', { timeout: 900_000 }, async () => {
  const files = await shown.page.evaluate(async () => (await (await fetch('/api/files')).json()).files);
  let cells = 0;
  // A recording that goes on is read by the page at one moment, and by the command at another.
  for (const { file, name } of files.filter((one) => one.trace && !one.session)) {
    for (const view of ['stacks', 'frames', 'images']) {
      for (const sort of ['so', 'peak', 'st']) {
        await shown.show(`file=${file}&view=${view}&sort=${sort}`);
        const seen = await seenRows(AMOUNTS.map(([title]) => title));
        const report = await runShown(shown.work, await shown.shownCommand());
        const metric = { so: 'outstanding_bytes', peak: 'peak_bytes', st: 'total_bytes' }[sort];
        const groups = view === 'stacks' ? byNames(report.groups).sort((one, other) => other[metric] - one[metric]) : report.groups;
        const printed = groups.slice(0, seen.length).map((group) => AMOUNTS.map(([, field]) => group[field]));
        const [lastSeen, lastPrinted] = [seen.at(-1)?.join(' '), printed.at(-1)?.join(' ')];
        const without = (rows) => rows.map((row) => row.join(' ')).filter((row) => row !== lastSeen && row !== lastPrinted).sort();
        assert.deepEqual(without(seen), without(printed), `${name} ${view} ${sort}`);
        cells += seen.length * AMOUNTS.length;
      }
    }
    await shown.show(`file=${file}&view=functions&sort=peak`);
    const seen = await seenRows(['With callees', 'Itself']);
    const report = await runShown(shown.work, await shown.shownCommand());
    const printed = report.sections[0].functions.slice(0, seen.length).map((row) => [row.inclusive.peak_bytes, row.own.peak_bytes]);
    const last = [seen.at(-1)?.join(' '), printed.at(-1)?.join(' ')];
    const without = (rows) => rows.map((row) => row.join(' ')).filter((row) => !last.includes(row)).sort();
    assert.deepEqual(without(seen), without(printed), `${name} functions`);
    cells += seen.length * 2;
  }
  console.log(`${cells} cells of ${files.map((one) => basename(one.name)).join(', ')}`);
  assert.ok(cells >= 500, `${cells} cells were compared`);
  assert.deepEqual(shown.browser.errors, []);
});

test('builds are compared by function as heapr diff --by function does, with its exit status', { timeout: 300_000 }, async (context) => {
  const files = await shown.page.evaluate(async () => (await (await fetch('/api/files')).json()).files);
  const [before, after] = ['exact.heapr', 'later.heapr'].map((name) => files.find((one) => one.name === name));
  if (!before || !after) return context.skip('other recordings were given');
  await shown.show(`view=compare&before=${before.file}&after=${after.file}&sort=st`);
  const seen = await seenRows(['Before', 'After']);
  const command = await shown.shownCommand();
  assert.match(command, /^heapr diff .*exact\.heapr .*later\.heapr --by function --sort st$/);
  const diff = await runShown(shown.work, command);
  assert.equal(await shown.page.textContent('.builds-sentence'), diff.sentence);
  assert.match(diff.sentence, / (more|less)/);
  const printed = diff.functions.map(({ amounts }) => amounts.map((one) => one.total_bytes)).filter(([one, other]) => one !== other).slice(0, seen.length);
  assert.deepEqual(seen, printed);
  const status = (growth) => runShown(shown.work, command, `--fail-on growth=${growth} --format json`).then(() => 0, () => 1);
  assert.deepEqual([await status('1K'), await status('1G')], [1, 0]);
  assert.deepEqual(shown.browser.errors, []);
});

test('where all memory is equals heapr explain --where to the byte, at the peak and at a moment', { timeout: 600_000 }, async () => {
  const files = await shown.page.evaluate(async () => (await (await fetch('/api/files')).json()).files);
  for (const { file, name, path, kind, trace } of files.filter((one) => one.trace && !one.session)) {
    for (const at of ['', `${Math.round(trace.duration_ns * 0.6)}ns`]) {
      // Another tool's file without events has no moments but those that it tells.
      const printed = await run(shown.work, HEAPR, ['explain', path, '--where', ...(at ? ['--at', at] : []), '--format', 'json']).then((text) => JSON.parse(text).where[0], (error) => String(error));
      await shown.show(`file=${file}${at ? `&at=${at}` : ''}`);
      await shown.page.waitForSelector('.where-pieces, .where.is-failed', { state: 'attached', timeout: 30_000 }).catch(async (error) => { throw new Error(`${name} ${at}: ${await shown.page.textContent('.view')} ${error}`); });
      await waitUntil(shown.page, () => !document.querySelector('.where.is-old'));
      const seen = await shown.page.locator('.where-pieces button').evaluateAll((rows) => rows.map((row) => row.title.split('\n').slice(0, 2)));
      if (typeof printed === 'string') {
        assert.deepEqual(seen, [], `${name} ${at}: ${printed}`);
        continue;
      }
      const number = (value) => value.toLocaleString('en');
      assert.deepEqual(
        seen.map(([label, text]) => [label, /^[\d,]+/.exec(text)[0]]), printed.pieces.map((piece) => [piece.label, number(piece.bytes)]), `${name} ${kind} ${at}`,
      );
      assert.equal(printed.pieces.reduce((sum, piece) => sum + piece.bytes, 0), printed.whole_bytes);
      if (printed.rss_bytes !== null) assert.equal(printed.whole_bytes, printed.rss_bytes + printed.beyond_bytes, `${name} ${at}: the pieces are all that is resident, and what is beyond`);
    }
  }
  assert.deepEqual(shown.browser.errors, []);
});

test('the first view of each kind has an answer, and no error', { timeout: 300_000 }, async () => {
  const files = await shown.page.evaluate(async () => (await (await fetch('/api/files')).json()).files);
  for (const { file, name } of files.filter((one) => one.trace)) {
    await shown.show(`file=${file}`);
    await waitUntil(shown.page, () => document.querySelector('.where-pieces li') && document.querySelector('.findings:not(.is-waiting)'));
    assert.equal(await shown.page.locator('.message.is-error:visible').count(), 0, name);
    const text = await shown.page.textContent('.overview');
    assert.ok(!/\bin 0 blocks\b|\bNaN\b|undefined/.test(text), `${name}: unknown is not 0: ${/.{60}(in 0 blocks|NaN|undefined).{40}/.exec(text)?.[0]}`);
  }
  assert.deepEqual(shown.browser.errors, []);
});
