import assert from 'node:assert/strict';
import { test } from 'node:test';
import { markdownBlock, markdownCode, markdownText } from './markdown-text';

test('names keep their signs in Markdown', () => {
  assert.equal(markdownText('std::vector<int> keep_all*'), 'std::vector\\<int\\> keep_all\\*');
  assert.equal(markdownCode('f<int>'), '`f<int>`');
  assert.equal(markdownCode('a`b'), '`` a`b ``');
  assert.deepEqual(markdownBlock(['x', '```']), ['````', 'x', '```', '````']);
});
