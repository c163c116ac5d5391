import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { patternsOf } from './cull-list';

describe('a cull list', () => {
  it('has a pattern a line', () => {
    assert.deepEqual(patternsOf('# my own\r\nxmalloc\r\n\r\n  libfoo.so!pool_get \n  # not this\nxmalloc\nlibbar.so!'), ['xmalloc', 'libfoo.so!pool_get', 'libbar.so!']);
    assert.deepEqual(patternsOf(''), []);
  });
});
