import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { editorAddress } from './editor';

describe('the address of an editor', () => {
  it('names file and line, and nothing in a path ends it', () => {
    assert.equal(editorAddress('vscode://file{file}:{line}', '/src/a b&c.cc', 7), 'vscode://file/src/a%20b%26c.cc:7');
    assert.equal(editorAddress('x://{file}', '/a', null), 'x:///a');
  });
  it('is none where no editor was chosen, or what was kept would run', () => {
    assert.equal(editorAddress('', '/a', 1), '');
    assert.equal(editorAddress('javascript://{file}', '/a', 1), '');
    assert.equal(editorAddress('alert(1)', '/a', 1), '');
  });
});
