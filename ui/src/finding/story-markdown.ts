/** Story of a finding as Markdown, for an issue. */
import type { OpenFile } from '../api/types';
import { formatBytes, formatDuration, plural } from '../format';
import { frameName, framePlace } from '../trace/metric-columns';
import { markdownBlock, markdownCode, markdownText } from './markdown-text';
import { type Story, heldText, textCurve } from './story-parts';

/** Returns the story, in the order of the page. */
export function storyMarkdown(story: Story, file: OpenFile): string {
  const { finding, source, sums, examples, cost, test, held, holders } = story;
  const own = finding.own_frame;
  const curve = finding.curve && finding.curve.length > 1
    ? markdownBlock([`${textCurve(finding.curve)}  ${formatBytes(Math.max(...finding.curve.map(([, bytes]) => bytes)))} at most, ${formatDuration(finding.curve.at(-1)?.[0] ?? 0)}`]) : [];
  const widest = Math.max(0, ...[...sums.values()].map(({ bytes }) => formatBytes(bytes).length));
  const code = source ? markdownBlock(source.lines.map((text, at) => {
    const number = source.first_line + at;
    const sum = sums.get(number);
    return `${(sum ? formatBytes(sum.bytes) : '').padStart(widest)} ${number === own?.line ? '>' : ' '} ${String(number).padStart(5)} ${text}`;
  })) : [...sums.values()].map(({ line, bytes, count }) => `- line ${line}: ${formatBytes(bytes)} in ${plural(count, 'block')}`);
  const blocks = examples.flatMap((block) => [
    `- ${formatBytes(block.size_bytes)}, ${formatDuration(block.age_ns)} old`,
    ...block.frames.slice(0, 12).map((frame) => `  - ${markdownCode(frameName(frame))}${framePlace(frame) ? ` ${markdownText(framePlace(frame))}` : ''}`),
  ]);
  const part = (title: string, lines: string[]) => (lines.length > 0 ? ['', `**${title}**`, '', ...lines] : []);
  return [
    `**${markdownText(finding.sentence)}**`, '', `Confidence ${finding.confidence}${own?.file ? `, ${markdownCode(`${own.file}${own.line === null ? '' : `:${own.line}`}`)}` : ''}`,
    ...part('How it came', [...curve, ...finding.evidence.map((text) => `- ${markdownText(text)}`)]),
    ...part('The lines', code), ...part('Blocks of it', blocks), ...part('Who holds it', [...held.map((holder) => `- ${markdownText(holder.name)} ${heldText(holder)}`), ...(held.length > 0 ? [''] : []), markdownCode(holders)]),
    ...part('What it will cost', cost ? [cost] : []), ...part('A test against it', test ? markdownBlock([test]) : []),
    '', `${markdownText(file.name)}${file.trace ? `, recorded over ${formatDuration(file.trace.duration_ns)}` : ''}: ${markdownCode(finding.command)}`, '',
  ].join('\n');
}
