/** Texts of programs in Markdown: names may have signs that are markup there. */

/** Returns text without markup, on one line. */
export function markdownText(text: string): string {
  return text.replace(/[\\`*<>[\]]/g, '\\$&').replace(/\s*[\r\n]\s*/g, ' ');
}

/** Returns text as code inside of a line. */
export function markdownCode(text: string): string {
  const line = text.replace(/\s*[\r\n]\s*/g, ' ');
  const runs = line.match(/`+/g);
  if (!runs) return `\`${line}\``;
  const ticks = '`'.repeat(Math.max(...runs.map((run) => run.length)) + 1);
  return `${ticks} ${line} ${ticks}`;
}

/** Returns lines as a block of code, whose fence no line ends. */
export function markdownBlock(lines: string[]): string[] {
  const runs = lines.flatMap((line) => line.match(/`{3,}/g) ?? []);
  const fence = '`'.repeat(Math.max(3, ...runs.map((run) => run.length + 1)));
  return [fence, ...lines, fence];
}
