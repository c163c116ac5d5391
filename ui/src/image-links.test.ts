import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { OpenFile } from './api/types';
import { giveLinks, linkedName, linksTo } from './image-links';

function fileOf(...processes: [executable: string, name: string, words: string[]][]): OpenFile {
  const shown = processes.map(([executable, name, words]) => ({ executable, name, command_line: words }));
  return { trace: { processes: shown } } as unknown as OpenFile;
}

describe('links to images', () => {
  it('are told by path and by the last part of it, of all files', () => {
    giveLinks([fileOf(['/usr/bin/redis-check-rdb', 'redis-server', ['redis-server *:6379', '']]), fileOf(['/usr/lib/llvm-14/bin/clang', 'clang++', ['clang++']], ['/usr/lib/llvm-14/bin/clang', 'clang-14', []])]);
    assert.equal(linkedName('redis-check-rdb'), 'redis-server (redis-check-rdb)');
    assert.equal(linksTo('/usr/bin/redis-check-rdb'), 'redis-server');
    assert.equal(linksTo('/usr/lib/llvm-14/bin/clang'), 'clang++, clang-14');
    assert.equal(linkedName('libc.so.6'), 'libc.so.6');
    assert.equal(linksTo(null), '');
  });

  it('are not names that a process gave itself, nor beginnings of the own name', () => {
    giveLinks([fileOf(['/usr/bin/node', 'MainThread', ['node', 'server.js']], ['/usr/bin/python3.11', 'python3', ['/usr/bin/python3']], ['/usr/bin/cat', 'cat', ['cat']])]);
    assert.deepEqual(['node', 'python3.11', 'cat'].map(linksTo), ['', '', '']);
  });
});
