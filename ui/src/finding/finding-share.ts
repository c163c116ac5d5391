/** Finding for others: as Markdown, and as a picture. */
import type { Finding, OpenFile } from '../api/types';
import { formatDuration } from '../format';
import { markdownBlock, markdownCode, markdownText } from './markdown-text';

/** Returns title, sentence, figures, source and command as Markdown. */
export function findingMarkdown(finding: Finding, file: OpenFile): string {
  const own = finding.own_frame;
  const place = own?.file ? ` (${markdownCode(`${own.file}${own.line === null ? '' : `:${own.line}`}`)})` : '';
  const source = finding.source
    ? ['', ...markdownBlock(finding.source.lines.map((text, at) => {
      const number = (finding.source?.first_line ?? 1) + at;
      return `${number === own?.line ? '>' : ' '} ${String(number).padStart(5)} ${text}`;
    }))]
    : [];
  return [
    `**${markdownText(finding.sentence)}**`, '',
    `${own?.symbol ? `${markdownCode(own.symbol)}${place}, ` : ''}confidence ${finding.confidence}`, '',
    ...finding.evidence.map((text) => `- ${markdownText(text)}`), ...source, '',
    `${markdownText(file.name)}${file.trace ? `, recorded over ${formatDuration(file.trace.duration_ns)}` : ''}`, '', ...markdownBlock([finding.command]), '',
  ].join('\n');
}

const WIDTH = 960;
const MARGIN = 28;

/** Breaks text into lines of at most `width` pixels. */
function wrapped(context: CanvasRenderingContext2D, text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && context.measureText(`${last} ${word}`).width <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Draws the card as a PNG that looks the same on every machine. */
export async function findingPicture(finding: Finding, file: OpenFile): Promise<Blob> {
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d');
  if (!context) throw new Error('the browser draws no pictures');
  const sentenceFont = '600 20px system-ui, sans-serif';
  context.font = sentenceFont;
  const sentence = wrapped(context, finding.sentence, WIDTH - 2 * MARGIN);
  const plot = 180;
  const height = MARGIN * 2 + sentence.length * 27 + 20 + plot + 80;
  canvas.width = WIDTH * 2;
  canvas.height = height * 2;
  context.scale(2, 2);
  context.fillStyle = '#ffffff';
  context.fillRect(0, 0, WIDTH, height);
  context.fillStyle = '#1b1f26';
  context.font = sentenceFont;
  let y = MARGIN + 18;
  for (const line of sentence) {
    context.fillText(line, MARGIN, y);
    y += 27;
  }
  const curve = finding.curve ?? [];
  const most = Math.max(1, ...curve.map(([, bytes]) => bytes));
  const last = Math.max(1, curve.at(-1)?.[0] ?? 1);
  const width = WIDTH - 2 * MARGIN;
  const at = ([time, bytes]: [number, number]): [number, number] => [MARGIN + (time * width) / last, y + plot - (bytes * (plot - 4)) / most];
  context.beginPath();
  context.moveTo(MARGIN, y + plot);
  curve.forEach((point) => context.lineTo(...at(point)));
  context.lineTo(MARGIN + width, y + plot);
  context.fillStyle = '#dfeafc';
  context.fill();
  context.beginPath();
  curve.forEach((point, place) => (place === 0 ? context.moveTo(...at(point)) : context.lineTo(...at(point))));
  context.strokeStyle = '#1d5fd1';
  context.lineWidth = 2;
  context.stroke();
  context.fillStyle = '#57606d';
  context.font = '14px system-ui, sans-serif';
  context.fillText(`${file.name}, ${formatDuration(last)}, confidence ${finding.confidence}`, MARGIN, y + plot + 26);
  context.font = '13px ui-monospace, monospace';
  context.fillText(finding.command.length > 118 ? `${finding.command.slice(0, 117)}…` : finding.command, MARGIN, y + plot + 50);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the picture could not be made'))), 'image/png'));
}
