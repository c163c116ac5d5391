import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noteOf } from './note-text';

test('a note has a moment, or none', () => {
  assert.deepEqual(noteOf('1200ms the report is loaded'), { atNs: 1.2e9, text: 'the report is loaded' });
  assert.deepEqual(noteOf('3 caches leak'), { atNs: null, text: '3 caches leak' });
  assert.deepEqual(noteOf('5s'), { atNs: null, text: '5s' });
});
