// Compares numbers of the page with those of the command that it shows: a thousand cells and more,
// over views, orders and filters.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from './browser.mjs';
import { HEAPR, run, runShown } from './heapr.mjs';
import { viewed } from './viewed.mjs';

const shown = viewed(async (work) => {
  writeFileSync(join(work.folder, 'a.json'), JSON.stringify(Array.from({ length: 5000 }, (_, id) => ({ id, name: `item ${id}`, list: [id, id + 1, 'x'.repeat(id % 90)] }))));
  await run(work, HEAPR, ['run', '-o', 'a.heapr', '--', 'jq', '-c', 'map(.list) | flatten | length', 'a.json']);
  return ['a.heapr'];
});

const AMOUNTS = [['Live bytes', 'outstanding_bytes'], ['Live', 'outstanding_count'], ['At peak', 'peak_bytes'], ['Total', 'total_bytes'], ['Allocs', 'total_count']];

/** Returns the exact numbers of all rows in the document, by column. */
async function seenRows(columns) {
  await shown.page.waitForSelector('.rows-block .row[aria-rowindex="2"]');
  await waitUntil(shown.page, () => !document.querySelector('.table.is-old, .is-waiting'));
  return shown.page.evaluate((columns) => {
    const heads = [...document.querySelectorAll('.table [role=columnheader]')].map((head) => head.textContent.replace(/ [▾▴]$/, ''));
    return [...document.querySelectorAll('.rows-block .row')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => columns.map((column) => {
      const cell = row.children[heads.indexOf(column)];
      return Number((cell.title || cell.textContent).replace(/ bytes?$/, '').replaceAll(',', ''));
    }));
  }, columns);
}

/** Rows that are equal in the sorted column may stand in any order. */
const inOrder = (rows) => rows.map((row) => row.join(' ')).sort();

test('over a thousand cells are those of the command line', { timeout: 240_000 }, async () => {
  let cells = 0;
  const filters = ['', '&at=peak', '&size=16&size=1K', '&lifetime=0&lifetime=1ms', '&temporary=1', '&range=0&range=2ms'];
  for (const view of ['stacks', 'frames', 'images', 'threads']) {
    for (const filter of filters) {
      for (const sort of view === 'stacks' || view === 'frames' ? ['so', 'st', 'peak'] : ['st']) {
        await shown.show(`view=${view}&sort=${sort === 'so' ? '' : sort}${filter}`);
        const report = await runShown(shown.work, await shown.shownCommand());
        if (report.groups.length === 0) continue;
        const seen = await seenRows(AMOUNTS.map(([title]) => title));
        const printed = report.groups.slice(0, seen.length).map((group) => AMOUNTS.map(([, name]) => group[name]));
        // The last visible row may have equal rows that are not visible.
        const last = seen.at(-1)?.join(' ');
        const without = (rows) => inOrder(rows).filter((row) => row !== last && row !== printed.at(-1)?.join(' '));
        assert.deepEqual(without(seen), without(printed), `${view} ${sort} ${filter}`);
        cells += seen.length * AMOUNTS.length;
      }
    }
  }
  for (const sort of ['so', 'st']) {
    await shown.show(`view=frames&lines=1&sort=${sort}`);
    const command = await shown.shownCommand();
    assert.match(command, / --lines /);
    const report = await runShown(shown.work, command);
    const seen = await seenRows(AMOUNTS.map(([title]) => title));
    const printed = report.groups.slice(0, seen.length).map((group) => AMOUNTS.map(([, name]) => group[name]));
    const last = seen.at(-1)?.join(' ');
    const without = (rows) => inOrder(rows).filter((row) => row !== last && row !== printed.at(-1)?.join(' '));
    assert.deepEqual(without(seen), without(printed), `lines by ${sort}`);
    cells += seen.length * AMOUNTS.length;
  }
  for (const sort of ['so', 'st', 'peak', 'so&lines=1', 'peak&lines=1']) {
    await shown.show(`view=functions&sort=${sort}`);
    const command = await shown.shownCommand();
    assert.match(command, sort.endsWith('lines=1') ? / --function-lines / : / --functions /);
    const report = await runShown(shown.work, command);
    const metric = { so: 'outstanding_bytes', st: 'total_bytes', peak: 'peak_bytes' }[sort.replace(/&.*/, '')];
    const seen = await seenRows(['With callees', 'Itself', 'Allocs']);
    const printed = report.sections[0].functions.slice(0, seen.length).map((row) => [row.inclusive[metric], row.own[metric], row.inclusive.total_count]);
    const last = seen.at(-1)?.join(' ');
    const without = (rows) => inOrder(rows).filter((row) => row !== last && row !== printed.at(-1)?.join(' '));
    assert.deepEqual(without(seen), without(printed), `functions by ${sort}`);
    cells += seen.length * 3;
  }
  assert.ok(cells >= 1000, `${cells} cells were compared`);
  assert.deepEqual(shown.browser.errors, []);
});
