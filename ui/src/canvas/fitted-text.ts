/** Texts cut to the width that there is for them. */

/** Average width of a character by font: enough to guess where to cut before measuring. */
const widths = new Map<string, Map<string, number>>();

/** The width of `text` in the context's font; measured once for each text. */
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

/** `text`, or its beginning with `…`, in at most `roomPx`; empty if not even three letters fit. */
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
