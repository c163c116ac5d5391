// Compares numbers of the page with those of the command that it shows: a thousand cells and more,
// over views, orders and filters. HEAPR_CELLS names other recordings, by commas:
// HEAPR_CELLS=/tmp/a.heapr,/tmp/massif.out node --test e2e/cells.test.mjs
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from './browser.mjs';
import { HEAPR, run, runShown } from './heapr.mjs';
import { viewed } from './viewed.mjs';

const given = (process.env.HEAPR_CELLS ?? '').split(',').filter((path) => path !== '');
const shown = viewed(async (work) => {
  if (given.length > 0) return given;
  writeFileSync(join(work.folder, 'a.json'), JSON.stringify(Array.from({ length: 5000 }, (_, id) => ({ id, name: `item ${id}`, list: [id, id + 1, 'x'.repeat(id % 90)] }))));
  await run(work, HEAPR, ['run', '-o', 'a.heapr', '--', 'jq', '-c', 'map(.list) | flatten | length', 'a.json']);
  return ['a.heapr'];
});

/** Of a large recording all stacks are more than a text can hold; those beyond have no visible part. */
const MOST = given.length > 0 ? '--top 6000 --format json' : '--format json';

const AMOUNTS = [['Live bytes', 'outstanding_bytes'], ['Live', 'outstanding_count'], ['At peak', 'peak_bytes'], ['Total', 'total_bytes'], ['Allocs', 'total_count']];

/** Returns the exact numbers of all rows in the document, by column. */
async function seenRows(columns) {
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  await waitUntil(shown.page, () => !document.querySelector('.table.is-old, .is-waiting'));
  return shown.page.evaluate((columns) => {
    const heads = [...document.querySelectorAll('.table [role=columnheader]')].map((head) => head.textContent.replace(/ [▾▴]$/, ''));
    return [...document.querySelectorAll('.rows-block .row')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => columns.map((column) => {
      const cell = row.children[heads.indexOf(column)];
      const amount = Number((cell.title || cell.textContent).replace(/ bytes?$/, '').replaceAll(',', ''));
      return Number.isNaN(amount) ? null : amount;
    }));
  }, columns);
}

/** Sums stacks that differ in lines alone, as the page does: its rows say which lines they sum. */
function withoutLines(groups) {
  const sums = new Map();
  for (const group of groups) {
    // The line of a language's function is a part of its frame.
    const key = JSON.stringify(group.frames.map(({ module, symbol, offset, file, line }) => [module, symbol, symbol === null ? offset : 0, module?.includes('/') === false ? `${file}:${line}` : '']));
    const known = sums.get(key);
    if (!known) sums.set(key, { ...group });
    else for (const [, name] of AMOUNTS) known[name] = known[name] === null ? null : known[name] + group[name];
  }
  return [...sums.values()];
}

/**
 * Compares rows. Those that are equal in the sorted column may stand in any order: of those that
 * are equal to the last visible one some may not be visible.
 */
function assertEqual(seen, printed, sorted, what) {
  const last = seen.at(-1)?.[sorted];
  const without = (rows) => inOrder(rows.filter((row) => row[sorted] !== last));
  assert.deepEqual(without(seen), without(printed), what);
}
const inOrder = (rows) => rows.map((row) => row.join(' ')).sort();

for (const [file, name] of (given.length > 0 ? given : ['a.heapr']).entries()) {
  test(`the cells of ${name} are those of the command line`, { timeout: given.length > 0 ? 1_200_000 : 240_000 }, async (context) => {
    const cells = await comparedCells((hash) => shown.show(`file=${file}&${hash}`));
    context.diagnostic(`${cells} cells of ${name}`);
    assert.ok(cells >= (given.length > 0 ? 1 : 1000), `${cells} cells were compared`);
    // The browser logs a filter that a file cannot answer.
    assert.deepEqual(shown.browser.errors.filter((text) => given.length === 0 || !text.includes('400')), []);
  });
}

/** Compares all views of a file, and returns the number of compared cells. */
async function comparedCells(show) {
  let cells = 0;
  const filters = ['', '&at=peak', '&size=16&size=1K', '&lifetime=0&lifetime=1ms', '&temporary=1', '&range=0&range=2ms'];
  for (const view of ['stacks', 'frames', 'images', 'threads']) {
    for (const filter of filters) {
      for (const sort of view === 'stacks' || view === 'frames' ? ['so', 'st', 'peak'] : ['st']) {
        await show(`view=${view}&sort=${sort}${filter}`);
        // A file of another tool may not tell what a filter needs.
        await waitUntil(shown.page, () => document.querySelector('.filter-row .command code, .filter-error, .message.is-error'));
        if (given.length > 0 && !(await shown.page.locator('.filter-row .command code').count())) continue;
        const report = await runShown(shown.work, await shown.shownCommand(), view === 'stacks' ? MOST : undefined);
        if (report.groups.length === 0) continue;
        const seen = await seenRows(AMOUNTS.map(([title]) => title));
        const metric = { so: 'outstanding_bytes', st: 'total_bytes', peak: 'peak_bytes' }[sort];
        const groups = view === 'stacks' ? withoutLines(report.groups).sort((a, b) => b[metric] - a[metric]) : report.groups;
        const printed = groups.slice(0, seen.length).map((group) => AMOUNTS.map(([, name]) => group[name]));
        assertEqual(seen, printed, { so: 0, st: 3, peak: 2 }[sort], `${view} ${sort} ${filter}`);
        cells += seen.length * AMOUNTS.length;
      }
    }
  }
  for (const sort of ['so', 'st']) {
    await show(`view=frames&lines=1&sort=${sort}`);
    const command = await shown.shownCommand();
    assert.match(command, / --lines /);
    const report = await runShown(shown.work, command);
    const seen = await seenRows(AMOUNTS.map(([title]) => title));
    const printed = report.groups.slice(0, seen.length).map((group) => AMOUNTS.map(([, name]) => group[name]));
    assertEqual(seen, printed, { so: 0, st: 3 }[sort], `lines by ${sort}`);
    cells += seen.length * AMOUNTS.length;
  }
  for (const sort of ['so', 'st', 'peak', 'so&lines=1', 'peak&lines=1']) {
    await show(`view=functions&sort=${sort}`);
    const command = await shown.shownCommand();
    assert.match(command, sort.endsWith('lines=1') ? / --function-lines / : / --functions /);
    const report = await runShown(shown.work, command);
    const metric = { so: 'outstanding_bytes', st: 'total_bytes', peak: 'peak_bytes' }[sort.replace(/&.*/, '')];
    const seen = await seenRows(['With callees', 'Itself', 'Allocs']);
    const printed = report.sections[0].functions.slice(0, seen.length).map((row) => [row.inclusive[metric], row.own[metric], row.inclusive.total_count]);
    assertEqual(seen, printed, 0, `functions by ${sort}`);
    cells += seen.length * 3;
  }
  return cells;
}
