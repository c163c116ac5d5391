/**
 * Story of a finding on one page, in the order that leads to the mend: curve, source with the bytes
 * of each line, blocks as examples, holders, cost, test.
 */
import { useState } from 'preact/hooks';
import { go } from '../address/use-address';
import type { ExamplesAnswer, Filter, Finding, Frame, FunctionsAnswer, HoldersAnswer, OpenFile, StackFrame } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { formatBytes, formatDuration, plural } from '../format';
import { copyText } from '../frame/clipboard';
import { SourcePlace } from '../frame/editor';
import { folded } from '../symbol-text';
import { frameName, framePattern, framePlace } from '../trace/metric-columns';
import { FindingCurve } from './finding-curve';
import { storyMarkdown } from './story-markdown';
import { Sentence } from './finding-sentence';
import { type Story, forecast, heldText, holdersCommand, lastGraph, lineSums, partOfSource, testLine } from './story-parts';

/** Number of holders that are named. */
const HOLDERS = 3;

/** Lines around the finding's own line of which source is asked for. */
const AROUND = 14;

export function FindingStory({ file, finding }: { file: OpenFile; finding: Finding }) {
  const [said, setSaid] = useState('');
  const { sort: _, ...chosen } = finding.chosen ?? {};
  const own = finding.own_frame;
  const of: Filter = own ? { ...chosen, require_frames: chosen.require_frames ?? [framePattern({ module: own.module, symbol: own.symbol, file: null, line: null, inlined: false, offset: 0 })] } : chosen;
  // What churns is freed again: its lines are told by all that they allocate.
  const metric = finding.kind === 'churn' ? 'total_bytes' : 'outstanding_bytes';
  const lines = useAnswer<FunctionsAnswer>('/api/functions', own?.symbol ? { file: file.file, filter: of, by_line: true, sort: metric === 'total_bytes' ? 'st' : 'so', match: own.symbol, offset: 0, limit: 500 } : null, file.generation);
  const examples = useAnswer<ExamplesAnswer>('/api/examples', { file: file.file, filter: of }, file.generation);
  const first = examples.data?.blocks[0]?.stack ?? null;
  const stack = useAnswer<{ frames: StackFrame[] }>('/api/stack', first === null ? null : { file: file.file, id: first, filter: {}, source_lines: AROUND });
  const around = stack.data?.frames.find((frame) => frame.file === own?.file && frame.symbol === own?.symbol && frame.source)?.source ?? null;
  const sums = lineSums(lines.data?.functions ?? [], own?.symbol ?? '', own?.file ?? '', metric);
  const source = around ?? finding.source ?? null;
  const graph = lastGraph(file);
  const holders = useAnswer<HoldersAnswer>('/api/native/holders', graph === null ? null : { file: file.file, number: graph, offset: 0, limit: HOLDERS }, file.generation);
  const story: Story = {
    finding, source: source && partOfSource(source, [...sums.keys(), ...(typeof own?.line === 'number' ? [own.line] : [])]), sums,
    examples: examples.data?.blocks ?? [], cost: forecast(finding), test: testLine(finding, file), held: holders.data?.rows ?? [], holders: holdersCommand(file),
  };
  const say = (text: string) => {
    setSaid(text);
    setTimeout(() => setSaid(''), 3000);
  };
  return (
    <article class="story">
      <header class="story-head">
        <button type="button" class="button" onClick={() => go({ finding: -1 })}>← All findings</button>
        <span class="quiet" role="status">{said}</span>
        <span class="grow" />
        <button type="button" class="button" title="The whole story, for an issue" onClick={() => void copyText(storyMarkdown(story, file)).then(() => say('copied'), (failure) => say(String(failure)))}>Copy as Markdown</button>
      </header>
      <p class="sentence"><Sentence finding={finding} /></p>
      <div class="story-columns">
        <section class="card"><h2>1. How it came</h2>
          {finding.curve && finding.curve.length > 1 ? <FindingCurve curve={finding.curve} halves={finding.curve_plus_minus} label={`What it held over ${formatDuration(file.trace?.duration_ns ?? 0)}`} /> : <p class="quiet">This finding has no curve.</p>}
          <ul class="evidence">{finding.evidence.map((text) => <li key={text}>{text}</li>)}</ul>
        </section>
        <section class="card"><h2>2. The lines</h2><Lines story={story} isLoading={lines.isLoading || stack.isLoading} /></section>
        <section class="card"><h2>3. Blocks of it</h2><Examples story={story} isLoading={examples.isLoading} error={examples.error?.message ?? null} /></section>
        <section class="card"><h2>4. Who holds it</h2><Holders story={story} graph={graph} isLoading={holders.isLoading} error={holders.error?.message ?? null} /></section>
        <section class="card"><h2>5. What it will cost</h2><p>{story.cost ?? costWithoutRate(finding)}</p></section>
        <section class="card"><h2>6. A test against it</h2>{story.test ? <code class="story-command">{story.test}</code> : <p class="quiet">No test of heapr run sees this kind.</p>}</section>
      </div>
    </article>
  );
}

/** What is told of the cost if no rate of growth is known. */
function costWithoutRate(finding: Finding): string {
  if (finding.kind !== 'growth') return `${formatBytes(finding.bytes)}. This kind of finding has no rate of growth.`;
  return (finding.curve?.length ?? 0) < 4 ? 'How fast it grows is unknown: its curve has too few moments.' : 'It hardly grew, or not at all, in the last third of its curve.';
}

function Lines({ story, isLoading }: { story: Story; isLoading: boolean }) {
  const { finding: { own_frame: own }, source, sums } = story;
  if (!own?.file) return <p class="quiet">{own?.symbol ? `${own.symbol}: its debug information names no source.` : 'No code of the program is the cause.'}</p>;
  const rows = [...sums.values()].sort((one, other) => one.line - other.line);
  if (!source) {
    return (
      <>
        <p class="quiet"><SourcePlace file={own.file} line={own.line} />{isLoading ? ': loading…' : ': the source is not here'}</p>
        <ol class="line-sums">{rows.map((sum) => <li key={sum.line}><span class="amount">{formatBytes(sum.bytes)}</span> line {sum.line}, {plural(sum.count, 'block')}</li>)}</ol>
      </>
    );
  }
  const most = Math.max(1, ...rows.map(({ bytes }) => bytes));
  return (
    <>
      <p class="quiet"><SourcePlace file={own.file} line={own.line} />{source.is_newer ? ' (changed after the trace was made)' : ''}{isLoading ? ', bytes are loading…' : ''}</p>
      <pre class="source has-sums" tabIndex={0} aria-label={`Source ${own.file}`}>
        {source.lines.map((text, at) => {
          const number = source.first_line + at;
          const sum = sums.get(number);
          return (
            <div key={number} class={number === own.line ? 'is-line' : ''} title={sum ? `${formatBytes(sum.bytes)} in ${plural(sum.count, 'block')}` : undefined}>
              <span class="line-sum">{sum ? formatBytes(sum.bytes) : ''}{sum && <i style={{ width: `${(sum.bytes * 100) / most}%` }} />}</span><span class="line-number">{number}</span>{text}
            </div>
          );
        })}
      </pre>
    </>
  );
}

/** What holds most in the last snapshot with references: of the whole heap, not of one finding. */
function Holders({ story, graph, isLoading, error }: { story: Story; graph: number | null; isLoading: boolean; error: string | null }) {
  const shown = (
    <>
      {isLoading && <p class="quiet" role="status">Reading the references…</p>}
      {error && <p class="quiet">not told here: {error}</p>}
      {story.held.length > 0 && <p class="quiet">Of all that was live in snapshot {graph}, most is held by:</p>}
      <ol class="holders">
        {story.held.map((holder) => (
          <li key={holder.name}>
            <button type="button" onClick={() => go({ finding: -1, view: 'snapshots', part: 'holders', number: graph ?? -1, match: holder.name })}>
              <strong>{holder.name}</strong> {heldText(holder)}
            </button>
          </li>
        ))}
      </ol>
    </>
  );
  return (
    <>
      {graph === null ? <p>No snapshot with references is in the recording. This tells it:</p> : shown}
      <code class="story-command">{story.holders}</code>
    </>
  );
}

/** `srv!std::map<…>::emplace(…) (map.h:9)`: templates and arguments would hide the names. */
function shortFrame(frame: Frame): string {
  const name = frameName(frame.symbol === null ? frame : { ...frame, symbol: folded(frame.symbol) });
  return framePlace(frame) ? `${name} (${framePlace(frame)})` : name;
}

function Examples({ story, isLoading, error }: { story: Story; isLoading: boolean; error: string | null }) {
  if (error) return <p class="quiet">not told: {error}</p>;
  if (isLoading) return <p class="quiet" role="status">Looking for blocks…</p>;
  if (story.examples.length === 0) return <p class="quiet">No single block is known: the recording has no events, or too many of them, or none of it is live.</p>;
  return (
    <ol class="examples">
      {story.examples.map((block) => (
        <li key={`${block.stack} ${block.born_ns}`}>
          <button type="button" onClick={() => go({ finding: -1, view: 'stacks', select: block.stack, sort: '' })}>
            <strong>{formatBytes(block.size_bytes)}</strong>, {formatDuration(block.age_ns)} old (made after {formatDuration(block.born_ns)}{block.thread ? ` by thread ${block.thread}` : ''})
          </button>
          <p class="quiet" title={block.frames.map(frameName).join('\n')}>{block.frames.slice(0, 6).map(shortFrame).join(' ← ')}{block.frames.length > 6 ? ' ← …' : ''}</p>
        </li>
      ))}
    </ol>
  );
}
