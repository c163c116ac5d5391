import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { giveColours, restColour, seriesColours } from './colours';

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

  it('are those of the names, the same in both themes', () => {
    giveColours(['a.so', 'b.so']);
    assert.equal(hue(seriesColours(['a.so'], true)[0] ?? ''), hue(seriesColours(['b.so', 'a.so'], false)[1] ?? ''));
    assert.notEqual(restColour(true), restColour(false));
  });
});
