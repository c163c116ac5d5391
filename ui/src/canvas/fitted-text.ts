/** Cuts texts to the available width. */
import { shorterNames } from '../symbol-text';

/** Widths of texts by font. */
const widths = new Map<string, Map<string, number>>();

/** Returns the width of `text` in the context's font; measured once for each text. */
export function textWidth(context: CanvasRenderingContext2D, text: string): number {
  let known = widths.get(context.font);
  if (!known) {
    known = new Map();
    widths.set(context.font, known);
  }
  let width = known.get(text);
  if (width === undefined) {
    if (known.size > 50_000) known.clear();
    width = context.measureText(text).width;
    known.set(text, width);
  }
  return width;
}

/**
 * Returns `text`, or its beginning with `…`, in at most `roomPx`; empty if not even three letters
 * fit.
 */
export function fittedText(context: CanvasRenderingContext2D, text: string, roomPx: number): string {
  if (roomPx < 14 || text === '') return '';
  const whole = textWidth(context, text);
  if (whole <= roomPx) return text;
  const letterPx = whole / text.length;
  let length = Math.floor(roomPx / letterPx) - 1;
  if (length < 2) return '';
  // The average may be wrong for the beginning of the text: shorten until it fits.
  let cut = `${text.slice(0, length)}…`;
  while (length > 2 && textWidth(context, cut) > roomPx) {
    length -= Math.max(1, Math.ceil((textWidth(context, cut) - roomPx) / letterPx / 2));
    cut = `${text.slice(0, length)}…`;
  }
  return length < 2 ? '' : cut;
}

const knownForms = new Map<string, string[]>();

/**
 * Returns the forms of a name, computed once: a flame graph is painted again with each move of the
 * pointer.
 */
function formsOf(name: string): string[] {
  let forms = knownForms.get(name);
  if (!forms) {
    if (knownForms.size > 50_000) knownForms.clear();
    forms = shorterNames(name);
    knownForms.set(name, forms);
  }
  return forms;
}

/**
 * Returns a function's or type's name in at most `roomPx`: the longest form that fits, else the
 * shortest without its middle. `behind` follows the name if there is room for both.
 */
export function fittedName(context: CanvasRenderingContext2D, name: string, roomPx: number, behind = ''): string {
  if (roomPx < 14 || name === '') return '';
  const forms = formsOf(name);
  const fits = (text: string) => textWidth(context, text) <= roomPx;
  const whole = (behind === '' ? undefined : forms.find((form) => fits(form + behind)));
  if (whole !== undefined) return whole + behind;
  const alone = forms.find(fits);
  if (alone !== undefined) return alone;
  const last = forms.at(-1) ?? name;
  let length = Math.floor((roomPx / textWidth(context, last)) * last.length) - 1;
  while (length > 2) {
    const headLength = Math.floor(length / 3);
    const cut = `${last.slice(0, headLength)}…${last.slice(last.length - (length - headLength))}`;
    if (fits(cut)) return cut;
    length -= 1;
  }
  return '';
}

let measuring: CanvasRenderingContext2D | null = null;

/** Returns a name fitted for text outside of a canvas, in the page's own font at `sizePx`. */
export function fittedNameIn(name: string, roomPx: number, sizePx: number, weight = 400): string {
  measuring ??= document.createElement('canvas').getContext('2d');
  if (!measuring) return name;
  measuring.font = `${weight} ${sizePx}px ${getComputedStyle(document.documentElement).getPropertyValue('--font-ui')}`;
  return fittedName(measuring, name, roomPx) || name;
}
