import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { imageColour, seriesColours } from '../canvas/colours';

/** Returns the variables of a theme in the style sheet. */
function theme(selector: string): Record<string, string> {
  const css = readFileSync('src/style/base.css', 'utf8');
  const block = css.slice(css.indexOf(`${selector} {`));
  return Object.fromEntries([...block.slice(0, block.indexOf('}')).matchAll(/--([\w-]+): (#[0-9a-f]{6})/g)].map(([, name, colour]) => [name ?? '', colour ?? '']));
}

function luminance([red, green, blue]: number[]): number {
  const part = (value: number) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part(red ?? 0) + 0.7152 * part(green ?? 0) + 0.0722 * part(blue ?? 0);
}

function channels(colour: string): number[] {
  const hsl = /hsl\((\d+) (\d+)% ([\d.]+)%\)/.exec(colour);
  if (!hsl) return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  const [hue, saturation, light] = [Number(hsl[1]), Number(hsl[2]) / 100, Number(hsl[3]) / 100];
  const part = (shift: number) => {
    const at = (shift + hue / 30) % 12;
    return light - saturation * Math.min(light, 1 - light) * Math.max(-1, Math.min(at - 3, 9 - at, 1));
  };
  return [part(0), part(8), part(4)];
}

function contrast(one: string, other: string): number {
  const [a, b] = [luminance(channels(one)), luminance(channels(other))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

/**
 * Pairs of colours with their least contrast: 4.5 for text, 3 for graphics (WCAG 2.1, 1.4.3 and
 * 1.4.11).
 */
const PAIRS: [string, string, number][] = [
  ...['surface', 'raised', 'ground', 'accent-soft', 'stripe'].flatMap((ground): [string, string, number][] => [['text', ground, 4.5], ['text-quiet', ground, 4.5]]),
  ['accent', 'surface', 4.5], ['bad', 'surface', 4.5], ['bad', 'accent-soft', 4.5], ['more', 'surface', 4.5], ['less', 'surface', 4.5], ['accent-text', 'accent', 4.5], ['match', 'surface', 3],
  ['text', 'warning-ground', 4.5], ['text', 'error-ground', 4.5], ['line-strong', 'surface', 3], ['rss', 'surface', 3], ['area', 'surface', 3], ['area', 'raised', 3], ['marker', 'surface', 3], ['good', 'surface', 3],
];

for (const [name, selector] of [['light', ':root'], ['dark', ":root[data-theme='dark']"]] as const) {
  describe(`contrast, ${name}`, () => {
    const colours = theme(selector);
    it('of what is read and seen is enough', () => {
      const weak = PAIRS.filter(([one, other, least]) => contrast(colours[one] ?? '#000000', colours[other] ?? '#000000') < least);
      assert.deepEqual(weak.map(([one, other]) => `${one} on ${other}: ${contrast(colours[one] ?? '', colours[other] ?? '').toFixed(2)}`), []);
    });
    it('of the text on the areas of a chart is that on the edge around it', () => {
      assert.ok(contrast(colours['text'] ?? '', colours['surface'] ?? '') >= 7);
    });
    it('of names in boxes of a flame graph or treemap is that of text', () => {
      const names = Array.from({ length: 24 }, (_, at) => `lib${at}.so`);
      const weak = names.flatMap((name) => [0, 1, 2, 3].flatMap((shade) => [true, false].map((isOwn) => contrast(colours['text'] ?? '', imageColour(name, selector !== ':root', shade, isOwn))))).filter((value) => value < 4.5);
      assert.deepEqual(weak, []);
    });
    it('of the series of a chart is enough against the surface', () => {
      const weak = seriesColours(Array.from({ length: 12 }, (_, at) => `lib${at}.so`), name === 'dark').map((colour) => contrast(colour, colours['surface'] ?? '')).filter((value) => value < 3);
      assert.deepEqual(weak, []);
    });
  });
}
