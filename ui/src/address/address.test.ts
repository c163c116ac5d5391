import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addedFilter, defaultAddress, filterOf, parseAddress, writeAddress } from './address';

describe('the address', () => {
  it('is empty when everything is as at the start', () => {
    assert.equal(writeAddress(defaultAddress()), '');
    assert.deepEqual(parseAddress(''), defaultAddress());
  });

  it('holds every field and gives it back', () => {
    const address = defaultAddress();
    address.file = 2;
    address.view = 'flame';
    address.pid = ['1', '2'];
    address.range = ['1500ns', '2s'];
    address.require_frames = ['lib<b>.so!operator<< <int>', 'a&b=c#d'];
    address.temporary = true;
    address.rss = true;
    address.object = 119915;
    address.match = '100 % "quoted"';
    assert.deepEqual(parseAddress(`#${writeAddress(address)}`), address);
  });

  it('that cannot be read falls back to the defaults', () => {
    const address = parseAddress('#file=abc&range=1s&temporary=maybe&unknown=1&object=1e9');
    assert.deepEqual(address, defaultAddress());
  });

  it('gives the filter with nothing that is empty', () => {
    assert.deepEqual(filterOf(defaultAddress()), {});
    assert.deepEqual(filterOf(parseAddress('#lang_frames=own')), { lang_frames: 'own' });
    assert.deepEqual(filterOf(parseAddress('#lang_frames=all')), {});
    const address = parseAddress('#range=1s&range=2s&at=peak&pid=5&no_default_cull=1');
    assert.deepEqual(filterOf(address), { range: ['1s', '2s'], at: 'peak', pid: ['5'], no_default_cull: true });
  });

  it('adds a filter without doubling it', () => {
    const address = parseAddress('#pid=5&range=1s&range=2s');
    assert.deepEqual(addedFilter(address, { pid: ['5', '6'], range: ['0', '1'], temporary: true }), {
      pid: ['5', '6'], range: ['0', '1'], temporary: true,
    });
  });
});
