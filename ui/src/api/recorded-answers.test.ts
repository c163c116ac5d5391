import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RecordedAnswers } from './recorded-answers';

const CLASSES = [
  { class: 'Map', object_count: 3, retained_bytes: 90, shallow_bytes: 5, distance: 2 },
  { class: 'Array', object_count: 9, retained_bytes: 50, shallow_bytes: 7, distance: 1 },
  { class: 'String', object_count: 1, retained_bytes: 20, shallow_bytes: 20, distance: 3 },
];
const answers = RecordedAnswers.of({
  '/api/files': { files: [] },
  '/api/snapshot/summary {"file":0,"sort":"retained"}': { rows: CLASSES, row_count: 1200 },
  '/api/frame {"file":0,"frame":"f1","sort":"so"}': { callers: [{ id: 'f2', total_bytes: 1 }, { id: 'f3', total_bytes: 2 }], callees: [] },
  '/api/diff {"after":{"file":1},"before":{"file":0},"by":"stacks","sort":"so"}': {
    groups: [{ names: ['a'], before: { total_bytes: 5 }, after: { total_bytes: 6 } }, { names: ['b'], before: { total_bytes: 9 }, after: { total_bytes: 1 } }],
  },
});
const summary = (more: object) => (answers.find('/api/snapshot/summary', { file: 0, filter: {}, match: '', offset: 0, limit: 200, descending: true, ...more }) as { rows: typeof CLASSES; row_count: number } | undefined);
const names = (more: object) => summary(more)?.rows.map((row) => row.class);

describe('recorded answers', () => {
  it('are given as they are, by the page', () => {
    assert.deepEqual(answers.find('/api/files', undefined), { files: [] });
    assert.deepEqual(names({ sort: 'retained' }), ['Map', 'Array', 'String']);
    assert.deepEqual(names({ sort: 'retained', offset: 1, limit: 1 }), ['Array']);
    assert.equal(summary({ sort: 'retained' })?.row_count, 3, 'the table ends where the recording does');
  });

  it('are sorted here where they were recorded in another order', () => {
    assert.deepEqual(names({ sort: 'shallow' }), ['String', 'Array', 'Map']);
    assert.deepEqual(names({ sort: 'shallow', descending: false }), ['Map', 'Array', 'String']);
    assert.deepEqual(names({ sort: 'retained', descending: false }), ['String', 'Array', 'Map']);
    assert.deepEqual(names({ sort: 'name' }), ['Array', 'Map', 'String']);
    assert.deepEqual(names({ sort: 'distance' }), ['Array', 'Map', 'String']);
    const diff = answers.find('/api/diff', { before: { file: 0 }, after: { file: 1 }, by: 'stacks', sort: 'st', descending: true, offset: 0, limit: 9 }) as { groups: { names: string[] }[] };
    assert.deepEqual(diff.groups.map((group) => group.names[0]), ['b', 'a']);
    const rows = (more: object) => (answers.find('/api/diff', { before: { file: 0 }, after: { file: 1 }, by: 'stacks', sort: 'so', offset: 0, limit: 9, ...more }) as { groups: object[]; match_count: number });
    assert.deepEqual([rows({ same: false }).match_count, rows({ same: true }).groups.length], [0, 2], 'their outstanding bytes are the same');
    const frame = answers.find('/api/frame', { file: 0, frame: 'f1', sort: 'st' }) as { callers: { id: string }[] };
    assert.deepEqual(frame.callers.map((caller) => caller.id), ['f3', 'f2']);
  });

  it('are searched here', () => {
    assert.deepEqual(names({ sort: 'retained', match: 'AR' }), ['Array']);
    assert.equal(summary({ sort: 'retained', match: 'x' })?.row_count, 0);
  });

  it('of one name are all of its rows, and not those of it in a table that ends before', () => {
    const key = (match: string) => `/api/functions {"by_line":true,"file":0,${match}"sort":"so"}`;
    const named = RecordedAnswers.of({ [key('')]: { functions: [{ frame: { symbol: 'ab' } }] }, [key('"match":"ab",')]: { functions: [{ frame: { symbol: 'ab' } }, { frame: { symbol: 'ab' } }], match_count: 2 } });
    const count = (match: string) => (named.find('/api/functions', { file: 0, filter: {}, by_line: true, sort: 'so', match, offset: 0, limit: 500 }) as { match_count: number }).match_count;
    assert.deepEqual([count('ab'), count('a'), count('x')], [2, 1, 0]);
  });

  it('do not know what was not recorded, nor an order that the server has not', () => {
    assert.equal(summary({ file: 1, sort: 'retained' }), undefined);
    assert.equal(summary({ sort: 'colour' }), undefined);
  });
});

it('answers are read from a text with one a line', () => {
  const text = '{"/api/":null,\n"/api/report {\\"by\\":\\"a\\\\\\"b\\",\\"file\\":0}":{"groups":[1],"x":"}"},\n"/api/files":{"files":[]}}';
  const answers = RecordedAnswers.ofText(text);
  assert.deepEqual(answers.find('/api/files', undefined), { files: [] });
  assert.deepEqual(answers.find('/api/report', { by: 'a"b', file: 0 }), { groups: [1], match_count: 1, x: '}' });
  assert.equal(answers.find('/api/report', { by: 'c', file: 0 }), undefined);
  assert.deepEqual(RecordedAnswers.ofText('{"/api/files":{"files":[7]}}').find('/api/files', undefined), { files: [7] });
});
