import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cellAddress, cellAt, cellStrength } from './page-places';

const pages = { cell_bytes: 4096, runs: [{ cell: 0, start_avma: '0x10000' }, { cell: 2, start_avma: '0xffffffffff600000' }], classes: ['code'], class: [0, null, 0], resident_bytes: [4096, 0, 1024] };

test('cells of a run follow one another, and no address is rounded', () => {
  assert.equal(cellAddress(pages, 1), '0x11000');
  assert.equal(cellAddress(pages, 2), '0xffffffffff600000');
  assert.equal(cellAddress({ ...pages, runs: [{ cell: 0, start_avma: '<b>' }] }, 0), '');
});

test('the fuller a cell the stronger its colour', () => {
  assert.equal(cellStrength(pages, 0), 1);
  assert.ok(cellStrength(pages, 2) < 0.7 && cellStrength(pages, 1) === 0.3);
});

test('a place outside of the cells is none of them', () => {
  assert.equal(cellAt(15, 5, 10, 300), 1);
  assert.equal(cellAt(15, 15, 10, 300), 121);
  assert.equal(cellAt(15, 25, 10, 130), -1);
  assert.equal(cellAt(-1, 5, 10, 300), -1);
});
