/**
 * Picture of the page as one PNG: a title, the canvases below one another, the file and the
 * command.
 */
import { themeColour } from './theme';

const MARGIN_PX = 16;
const LINE_PX = 22;

/** Cuts text at its end to fit `width`. */
function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let short = text;
  while (short.length > 1 && context.measureText(`${short}…`).width > width) short = short.slice(0, -1);
  return `${short}…`;
}

/** Draws the canvases of the page, with their title and facts. */
export function pagePicture(title: string, facts: string[], command: string): Promise<Blob> {
  const pictures = [...document.querySelectorAll<HTMLCanvasElement>('.canvas-box canvas')].filter((canvas) => canvas.width > 0 && canvas.height > 0);
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d');
  if (!context || pictures.length === 0) return Promise.reject(new Error('nothing is drawn here'));
  const scale = window.devicePixelRatio || 1;
  const width = Math.max(...pictures.map((picture) => picture.width)) + 2 * MARGIN_PX * scale;
  const head = (MARGIN_PX + LINE_PX * (1 + facts.length) + 8) * scale;
  const foot = (command === '' ? MARGIN_PX : LINE_PX + MARGIN_PX) * scale;
  canvas.width = width;
  canvas.height = head + foot + pictures.reduce((sum, picture) => sum + picture.height + 8 * scale, 0);
  context.fillStyle = themeColour('surface');
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.textBaseline = 'middle';
  const room = width - 2 * MARGIN_PX * scale;
  const write = (text: string, font: string, colour: string, y: number) => {
    context.font = font;
    context.fillStyle = themeColour(colour);
    context.fillText(fitted(context, text, room), MARGIN_PX * scale, y);
  };
  let y = (MARGIN_PX + LINE_PX / 2) * scale;
  write(title, `600 ${16 * scale}px ${themeColour('font-ui')}`, 'text', y);
  for (const fact of facts) {
    y += LINE_PX * scale;
    write(fact, `${13 * scale}px ${themeColour('font-ui')}`, 'text-quiet', y);
  }
  let top = head;
  for (const picture of pictures) {
    context.drawImage(picture, MARGIN_PX * scale, top);
    top += picture.height + 8 * scale;
  }
  if (command !== '') write(command, `${12 * scale}px ${themeColour('font-mono')}`, 'text-quiet', top + (LINE_PX / 2) * scale);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the picture could not be made'))), 'image/png'));
}
