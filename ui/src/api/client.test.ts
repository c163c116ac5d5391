import { describe, expect, it } from 'vitest';
import { recordedKey } from './client';

describe('the key of a recorded answer', () => {
  it('does not depend on the order of fields nor on how much is asked for', () => {
    const asked = { file: 0, filter: { pid: ['1'], at: 'peak' }, by: 'stacks', offset: 200, limit: 200, frames_max: 12 };
    expect(recordedKey('/api/report', asked)).toBe(recordedKey('/api/report', { by: 'stacks', filter: { at: 'peak', pid: ['1'] }, file: 0, limit: 8 }));
    expect(recordedKey('/api/report', asked)).toBe('/api/report {"by":"stacks","file":0,"filter":{"at":"peak","pid":["1"]}}');
    expect(recordedKey('/api/files')).toBe('/api/files');
  });

  it('tells different questions apart, and leaves out what is null or empty', () => {
    expect(recordedKey('/api/flame', { file: 0, filter: {}, root: null, focus: null })).toBe('/api/flame {"file":0}');
    expect(recordedKey('/api/report', { sort: 'so' })).not.toBe(recordedKey('/api/report', { sort: 'st' }));
  });
});
