/** Cards of findings, at the top of the page. */
import { useState } from 'preact/hooks';
import { addedFilter, defaultAddress, emptyFilter } from '../address/address';
import { go, useAddress } from '../address/use-address';
import type { Finding, FindingsAnswer, OpenFile } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { formatBytes, formatDuration } from '../format';
import { withHalf } from '../trace/estimate';
import { SourcePlace } from '../frame/editor';
import { copyText, saveBlob } from '../frame/clipboard';
import { FindingCurve } from './finding-curve';
import { Sentence } from './finding-sentence';
import { FindingStory } from './finding-story';
import { findingMarkdown, findingPicture } from './finding-share';

const KINDS: Record<Finding['kind'], string> = {
  growth: 'Growth', peak: 'Peak', churn: 'Churn', idle: 'Idle', resident: 'Resident', overhead: 'Small blocks', slices: 'Slices', duplicates: 'Duplicates', frees: 'Frees', unseen: 'Not seen',
};
const SURE: Record<Finding['confidence'], string> = { high: 'certain', medium: 'likely', low: 'possible' };

export function FindingCards({ file }: { file: OpenFile }) {
  const { data, error, isLoading } = useAnswer<FindingsAnswer>('/api/findings', { file: file.file }, file.generation);
  const address = useAddress();
  if (error) return null;
  if (!data) return <section class="card findings is-waiting" role="status" aria-busy={isLoading}>Looking for what stands out…</section>;
  const opened = data.findings[address.finding];
  if (opened) return <FindingStory file={file} finding={opened} />;
  return (
    <section class="findings" aria-label="Findings">
      {data.verdict && data.findings.length === 0 && <p class="verdict">{data.verdict}</p>}
      {typeof data.until_ns === 'number' && data.until_ns < (file.trace?.duration_ns ?? 0) && (
        <p class="quiet">Told of the first {formatDuration(data.until_ns)}; it is looked for again when twice as much is recorded.</p>
      )}
      {data.findings.map((finding, at) => <FindingCard key={finding.sentence} finding={finding} file={file} number={at} />)}
      {data.verdict && data.findings.length > 0 && <p class="quiet">{data.verdict}</p>}
    </section>
  );
}

function FindingCard({ finding, file, number }: { finding: Finding; file: OpenFile; number: number }) {
  const isFirst = number === 0;
  const [said, setSaid] = useState('');
  const say = (text: string) => {
    setSaid(text);
    setTimeout(() => setSaid(''), 3000);
  };
  const { sort = 'so', ...filter } = finding.chosen ?? {};
  const show = (view: string, more = {}) => go({ ...emptyFilter(), ...addedFilter(defaultAddress(), filter), view, sort, select: '', match: '', root: '', focus: '', ...more });
  const value = finding.kind === 'churn' ? 'temporary_bytes' : filter.at ? 'outstanding_bytes' : 'total_bytes';
  return (
    <article class={`card finding is-${finding.kind}${isFirst ? ' is-first' : ''}`}>
      <header>
        <h2><span class={`kind is-${finding.kind}`}>{KINDS[finding.kind]}</span> <span class="quiet">{SURE[finding.confidence]}</span></h2>
        <span class="quiet" role="status">{said}</span>
        <span class="actions">
          <button type="button" class="button is-main" title="Its lines, blocks, holders, cost, and a test, on one page" onClick={() => go({ finding: number })}>The whole story</button>
          {finding.chosen && <button type="button" class="button" onClick={() => show('flame', { value })}>Flame graph</button>}
          {finding.chosen && <button type="button" class="button" onClick={() => show('stacks')}>Stacks</button>}
          <button type="button" class="button" title="Sentence, figures, source and command, for a note or an issue" onClick={() => void copyText(findingMarkdown(finding, file)).then(() => say('copied'), (failure) => say(String(failure)))}>Copy as Markdown</button>
          {finding.curve && <button type="button" class="button" title="Curve, sentence, file and command as a PNG" onClick={() => void findingPicture(finding, file).then((blob) => saveBlob('heapr-finding.png', blob), (failure) => say(String(failure)))}>Save as picture</button>}
        </span>
      </header>
      <p class="sentence"><Sentence finding={finding} /></p>
      <div class="finding-body">
        {finding.curve && finding.curve.length > 1 && finding.curve.some(([, bytes]) => bytes > 0) && <FindingCurve curve={finding.curve} halves={finding.curve_plus_minus} label={`${withHalf(finding, 'bytes', formatBytes, formatBytes)} over ${formatDuration(file.trace?.duration_ns ?? 0)}`} />}
        {isFirst && finding.source && (
          <pre class="source" tabIndex={0} aria-label={`Source ${finding.own_frame?.file ?? ''}`}>
            {finding.source.lines.map((text, at) => {
              const number = (finding.source?.first_line ?? 1) + at;
              return <div key={number} class={number === finding.own_frame?.line ? 'is-line' : ''}><span class="line-number">{number}</span>{text}</div>;
            })}
          </pre>
        )}
        <ul class="evidence">{finding.evidence.map((text) => <li key={text} title={text}>{text}</li>)}</ul>
      </div>
      <div class="finding-foot">
        {finding.own_frame?.file && <span class="quiet place-line"><SourcePlace file={finding.own_frame.file} line={finding.own_frame.line} /></span>}
        <code class="finding-command">{finding.command}</code>
      </div>
    </article>
  );
}
