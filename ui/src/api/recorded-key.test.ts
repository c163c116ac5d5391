import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { recordedKey } from './recorded-key';

describe('the key of a recorded answer', () => {
  it('does not depend on the order of fields nor on how much is asked for', () => {
    const asked = { file: 0, filter: { pid: ['1'], at: 'peak' }, by: 'stacks', offset: 200, limit: 200, frames_max: 12 };
    assert.equal(recordedKey('/api/report', asked), recordedKey('/api/report', { by: 'stacks', filter: { at: 'peak', pid: ['1'] }, file: 0, limit: 8 }));
    assert.equal(recordedKey('/api/report', asked), '/api/report {"by":"stacks","file":0,"filter":{"at":"peak","pid":["1"]}}');
    assert.equal(recordedKey('/api/files'), '/api/files');
  });

  it('tells different questions apart, and leaves out what is null or empty', () => {
    assert.equal(recordedKey('/api/flame', { file: 0, filter: {}, root: null, focus: null }), '/api/flame {"file":0}');
    assert.notEqual(recordedKey('/api/report', { sort: 'so' }), recordedKey('/api/report', { sort: 'st' }));
  });
});
