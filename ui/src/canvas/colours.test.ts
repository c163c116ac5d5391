import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { giveColours, imageHue, restColour, seriesColours } from './colours';

const hue = (colour: string) => Number(/hsl\((\d+)/.exec(colour)?.[1]);

describe('the colours of a chart', () => {
  it('are never two that look alike, whatever names had theirs before', () => {
    giveColours(Array.from({ length: 40 }, (_, at) => `lib${at}.so`));
    for (let first = 0; first < 40; first += 1) {
      const names = Array.from({ length: 8 }, (_, at) => `lib${(first + at * 12) % 40}.so`);
      const hues = seriesColours([...new Set(names)], false).map(hue);
      hues.forEach((one, at) => hues.slice(0, at).forEach((other) => {
        const apart = Math.abs(one - other);
        assert.ok(Math.min(apart, 360 - apart) >= 24, `${hues}`);
      }));
    }
  });

  it('tell two of one name apart, and leave to a name that was given one its own', () => {
    assert.equal(new Set(seriesColours(['node', 'node', 'node'], false)).size, 3);
    giveColours(['app']);
    const own = imageHue('app');
    for (let number = 0; number < 50; number += 1) assert.equal(hue(seriesColours([`thread ${number}`, 'app'], false)[1] ?? ''), own);
  });

  it('are the same whatever was looked at before, and stay with a name that was given none', () => {
    const names = ['app', 'libc.so.6', 'Buffer', 'a function'];
    const hues = () => names.map(imageHue);
    giveColours(names.slice(0, 2));
    const alone = hues();
    giveColours(['other', 'libz.so.1', 'libc.so.6']);
    imageHue('drawn before');
    giveColours(names.slice(0, 2));
    assert.deepEqual(hues(), alone);
    giveColours([]);
    assert.deepEqual(hues().slice(2), alone.slice(2));
  });

  it('are those of the names, the same in both themes', () => {
    giveColours(['a.so', 'b.so']);
    assert.equal(hue(seriesColours(['a.so'], true)[0] ?? ''), hue(seriesColours(['b.so', 'a.so'], false)[1] ?? ''));
    assert.notEqual(restColour(true), restColour(false));
  });
});
