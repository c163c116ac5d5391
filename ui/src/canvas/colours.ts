/** Colours of images, kinds and changes: a name has the same colour in every picture. */

/** Hues that can be distinguished side by side; the first ten differ by 24 degrees or more. */
const HUES = [212, 28, 145, 282, 352, 182, 52, 318, 95, 248, 12, 165];
const given = new Map<string, number>();

function hueOf(name: string): number {
  // A name without a given colour has one of its own, whatever is drawn first.
  return hueAt(given.get(name) ?? shadeSum(name) % (2 * HUES.length));
}

function hueAt(place: number): number {
  const hue = HUES[place % HUES.length] ?? 0;
  return (hue + Math.floor(place / HUES.length) * 17) % 360;
}

/**
 * Assigns colours to names in this order, and clears earlier assignments. A file has the same
 * colours each time and in each browser, whatever files were shown before.
 */
export function giveColours(names: string[]): void {
  given.clear();
  for (const name of names) if (!given.has(name)) given.set(name, given.size);
}

/**
 * Returns the colour of an image (a module's file name); grey if the name is empty. Code that is not
 * the program's own is nearly grey.
 */
export function imageColour(name: string, isDark: boolean, shade = 0, isOwn = true): string {
  if (name === '') return isDark ? `hsl(220 6% ${34 + shadeStep(shade)}%)` : `hsl(220 8% ${80 + shadeStep(shade)}%)`;
  return paleColour(hueOf(name), isDark, shade, isOwn ? 1 : QUIET);
}

/** Returns the area colour of an entry of a fixed list, by its index. */
export function placeColour(place: number, isDark: boolean, shade = 0): string {
  return paleColour(hueAt(place), isDark, shade);
}

/** Returns the colour of a list's entry, as strong as the series of a chart. */
export function placeSeriesColour(place: number, isDark: boolean): string {
  const hue = hueAt(place);
  return isDark ? `hsl(${hue} 48% ${seriesLightness(hue, true)}%)` : `hsl(${hue} 58% ${seriesLightness(hue, false)}%)`;
}

function shadeStep(shade: number): number {
  return ((shade % 4) - 1.5) * 2.2;
}

/** Part of its saturation that the colour of a library's code has. */
const QUIET = 0.3;

function paleColour(hue: number, isDark: boolean, shade: number, strength = 1): string {
  const step = shadeStep(shade);
  return isDark ? `hsl(${hue} ${38 * strength}% ${27.5 + step}%)` : `hsl(${hue} ${62 * strength}% ${strength < 1 ? 84 + step : 77 + step}%)`;
}

/** Returns the luminance of `hsl` as defined by WCAG 2. */
function luminance(hue: number, saturation: number, light: number): number {
  const part = (shift: number) => {
    const at = (shift + hue / 30) % 12;
    const value = light - saturation * Math.min(light, 1 - light) * Math.max(-1, Math.min(at - 3, 9 - at, 1));
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(0) + 0.7152 * part(8) + 0.0722 * part(4);
}

/** Luminance of the surface behind charts, by theme. */
const SURFACE = { light: 1, dark: 0.0137 };
/** Least contrast of a series against the surface. */
const CONTRAST_MIN = 3.05;

/**
 * Returns the lightness of a hue in a chart (percent): as pale as is still visible on the surface.
 */
export function seriesLightness(hue: number, isDark: boolean): number {
  const step = isDark ? 1 : -1;
  for (let light = isDark ? 48 : 62; light > 20 && light < 80; light += step) {
    const own = luminance(hue, isDark ? 0.48 : 0.58, light / 100);
    const contrast = isDark ? (own + 0.05) / (SURFACE.dark + 0.05) : (SURFACE.light + 0.05) / (own + 0.05);
    if (contrast >= CONTRAST_MIN) return light;
  }
  return isDark ? 60 : 40;
}

/** Least distance of two hues in one chart, in degrees. */
const HUE_STEP = 24;

/**
 * Returns the colours of the series of one chart: those of their names, but never two similar ones.
 * Names with given colours keep theirs first.
 */
export function seriesColours(names: string[], isDark: boolean): string[] {
  // By index: two threads may have the same name.
  const taken = new Map<number, number>();
  const isFree = (hue: number) => [...taken.values()].every((other) => Math.min(Math.abs(hue - other), 360 - Math.abs(hue - other)) >= HUE_STEP);
  for (const isGiven of [true, false]) {
    names.forEach((name, place) => {
      if (given.has(name) !== isGiven) return;
      const own = hueOf(name);
      taken.set(place, isFree(own) ? own : (HUES.find(isFree) ?? own));
    });
  }
  return names.map((_, place) => taken.get(place) ?? 0).map((hue) => (isDark ? `hsl(${hue} 48% ${seriesLightness(hue, true)}%)` : `hsl(${hue} 58% ${seriesLightness(hue, false)}%)`));
}

/**
 * Returns the hue of the swatch beside an image's name; base.css makes it as strong as the series
 * of a chart.
 */
export function imageHue(name: string): number {
  return hueOf(name);
}

/** Returns the colour of amounts outside of all series of a chart. */
export function restColour(isDark: boolean): string {
  return isDark ? 'hsl(220 6% 38%)' : 'hsl(220 10% 76%)';
}

/** Returns red for growth and blue for shrinking, in proportion to the larger amount. */
export function changeColour(before: number, after: number, isDark: boolean): string {
  const greater = Math.max(before, after);
  const change = greater === 0 ? 0 : (after - before) / greater;
  const strength = Math.min(1, Math.abs(change));
  if (strength < 0.005) return isDark ? 'hsl(220 5% 36%)' : 'hsl(220 10% 86%)';
  const hue = change > 0 ? 4 : 214;
  return isDark ? `hsl(${hue} ${20 + 45 * strength}% ${36 + 6 * strength}%)` : `hsl(${hue} ${45 + 40 * strength}% ${88 - 20 * strength}%)`;
}

/** Returns a number of a text, so that neighbours of one image differ a little. */
export function shadeOf(text: string): number {
  return shadeSum(text) & 3;
}

function shadeSum(text: string): number {
  let sum = 0;
  for (let at = 0; at < text.length; at += 1) sum = (sum * 31 + text.charCodeAt(at)) & 0xffff;
  return sum;
}
