import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Piece } from '../api/types';
import { isLive, pieceLink, piecePlace } from './where-links';

const piece = (more: Partial<Piece>): Piece => ({ kind: 'function', label: 'f', note: '', frame: null, is_own: true, bytes: 7, block_count: 1, stack_count: 1, ...more });
const frame = { module: '/usr/bin/app', symbol: 'keep(int)', file: null, line: null, inlined: false, offset: 0 };

test('a function leads to its stacks at the moment, other live blocks to what they are of', () => {
  assert.deepEqual(pieceLink(piece({ frame }), '5ms', true)?.require_frames, ['app!keep(int)']);
  assert.equal(pieceLink(piece({ frame }), '5ms', true)?.at, '5ms');
  assert.equal(pieceLink(piece({ kind: 'small' }), '', true)?.view, 'functions');
  assert.equal(pieceLink(piece({ kind: 'small' }), '', true)?.at, 'peak');
});

test('memory in no block leads to what is resident, if the file has readings', () => {
  assert.equal(pieceLink(piece({ kind: 'files' }), '', true)?.view, 'resident');
  assert.equal(pieceLink(piece({ kind: 'unknown' }), '', false), null);
});

test('what is not known is grey, and functions have colours of their own', () => {
  assert.equal(piecePlace(piece({ kind: 'unknown' }), 3), null);
  assert.equal(piecePlace(piece({}), 3), 3);
  assert.ok(isLive(piece({ kind: 'small' })) && !isLive(piece({ kind: 'kept' })));
});
