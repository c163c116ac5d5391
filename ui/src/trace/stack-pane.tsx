/**
 * Pane of one stack in full: every frame with its location, inlined and culled frames, and the
 * source line.
 */
import { addedFilter } from '../address/address';
import { go, useAddress } from '../address/use-address';
import type { Filter, OpenFile, StackFrame } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { plural } from '../format';
import { copyText } from '../frame/clipboard';
import { EditorChoice, SourcePlace } from '../frame/editor';
import { Message } from '../frame/message';
import { useTop } from '../frame/use-top';
import { FrameName } from './frame-name';
import { frameName, framePattern } from './metric-columns';

/** `ownLines`: lines of the own frame that a row of stacks sums; all of them are marked. */
export function StackPane({ file, filter, id, ownLines = [] }: { file: OpenFile; filter: Filter; id: string; ownLines?: number[] }) {
  const { data, error, isLoading } = useAnswer<{ frames: StackFrame[]; own?: number | null }>('/api/stack', { file: file.file, id, filter, source_lines: 5 });
  const top = useTop<HTMLOListElement>(id);
  if (error) return <Message kind="error">{error.message}</Message>;
  if (!data) return <p class="empty" role="status">Loading…</p>;
  const asText = () => data.frames.map((frame) => {
    const place = frame.file === null ? '' : `  ${frame.file}${frame.line === null ? '' : `:${frame.line}`}`;
    return `${frameName(frame)}${place}${frame.inlined ? ' (inlined)' : ''}`;
  }).join('\n');
  return (
    <section class={`stack-pane${isLoading ? ' is-old' : ''}`} aria-label="Stack">
      <header class="pane-head">
        <h2>Stack <span class="quiet">{plural(data.frames.length, 'frame')}, innermost first</span></h2>
        <span class="actions"><EditorChoice /> <button type="button" class="button" onClick={() => void copyText(asText())}>Copy</button></span>
      </header>
      <ol ref={top} class="stack-frames">
        {data.frames.map((frame, at) => <StackStep key={at} frame={frame} isInnermost={at === data.frames.findIndex((other) => !other.culled)} isOwn={at === data.own} ownLines={ownLines} isFirst={at === (data.own ?? data.frames.findIndex((other) => !other.culled))} />)}
      </ol>
    </section>
  );
}

function StackStep({ frame, isFirst, isOwn, isInnermost, ownLines }: { frame: StackFrame; isFirst: boolean; isOwn: boolean; isInnermost: boolean; ownLines: number[] }) {
  const address = useAddress();
  const pattern = framePattern(frame);
  const isMarked = (line: number) => line === frame.line || (isFirst && ownLines.includes(line));
  return (
    <li class={frame.culled ? 'is-culled' : isOwn ? 'is-own' : ''}>
      <div class="stack-line">
        <FrameName frame={frame} showsPlace={false} isOwn={isOwn} />
        {isOwn && <span class="badge" title="The innermost frame that is no allocator's, runtime's or library's">own</span>}
        {frame.culled && <span class="badge" title="Removed by culling: the allocator's own frame, or one of the cull list">culled</span>}
        <span class="stack-actions">
          <button type="button" class="button" title="Callers and callees" onClick={() => go({ view: 'functions', lines: false, select: frame.id, sort: '', match: '', hidden: [] })}>callers</button>
          {pattern && <button type="button" class="button" title={`--require-frames '${pattern}'`} onClick={() => go(addedFilter(address, { require_frames: [pattern] }))}>only</button>}
          {pattern && <button type="button" class="button" disabled={!isInnermost} title={isInnermost ? `--cull-frames '${pattern}'` : 'Culling removes innermost frames'} onClick={() => go(addedFilter(address, { cull_frames: [pattern] }))}>cull</button>}
        </span>
      </div>
      {frame.file !== null && <div class="quiet place"><SourcePlace file={frame.file} line={frame.line} />{isFirst && ownLines.length > 1 ? `, the row sums lines ${ownLines.join(', ')}` : ''}</div>}
      {frame.source && (
        <details open={isFirst}>
          <summary class="quiet">source{frame.source.is_newer ? ' (changed after the trace was made)' : ''}</summary>
          <pre class="source" tabIndex={0} aria-label="Source">
            {frame.source.lines.map((text, at) => {
              const number = (frame.source?.first_line ?? 1) + at;
              return <div key={number} class={isMarked(number) ? 'is-line' : ''}><span class="line-number">{number}</span>{text}</div>;
            })}
          </pre>
        </details>
      )}
    </li>
  );
}
