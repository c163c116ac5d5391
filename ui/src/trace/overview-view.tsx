/** Overview of a trace: totals, heaps, largest stacks and functions, and facts of the recording. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { addedFilter } from '../address/address';
import { go, useAddress } from '../address/use-address';
import type { Amounts, Filter, Frame, Group, HeapTotals, ReportAnswer, Totals } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { UNKNOWN, formatBytes, formatCount, formatDuration, formatPercent, plural, shellWords } from '../format';
import { FindingCards } from '../finding/finding-cards';
import { WhereCard, isOfAllMemory } from '../where/where-card';
import { Message } from '../frame/message';
import { amountText, exactAmount, halfOfBoth, isEstimate, plusMinus, withHalf } from './estimate';
import { FrameName, ImageName } from './frame-name';
import { frameName, framePattern, framePlace, isNameless } from './metric-columns';
import { StackName } from './stack-name';
import type { TraceViewProps } from './view-props';

export function OverviewView({ file, filter, onCommand }: TraceViewProps) {
  const ask = (by: string, sort: string) => ({ file: file.file, filter, by, sort, descending: true, offset: 0, limit: 8, match: '', frames_max: 4 });
  const stacks = useAnswer<ReportAnswer>('/api/report', ask('stacks', 'so'), file.generation);
  const peak = useAnswer<ReportAnswer>('/api/report', ask('stacks', 'peak'), file.generation);
  const images = useAnswer<ReportAnswer>('/api/report', ask('images', 'so'), file.generation);
  const churn = useAnswer<ReportAnswer>('/api/report', ask('stacks', 'stc'), file.generation);
  useEffect(() => onCommand(stacks.data?.command ?? null, stacks.error?.message ?? null), [stacks.data, stacks.error]);
  useEffect(() => () => onCommand(null, null), []);
  const isStory = useAddress().finding >= 0 && isEmpty(filter);
  const totals = stacks.data?.totals ?? (stacks.error ? null : file.trace?.totals ?? null);
  return (
    <div class="overview">
      {stacks.error && <Message kind="error">{stacks.error.message}</Message>}
      {!isStory && isOfAllMemory(filter) && <WhereCard file={file} filter={filter} />}
      {isEmpty(filter) && <FindingCards file={file} />}
      {totals && <TotalsCards totals={totals} isPart={isPart(filter)} isMoment={Boolean(filter.at)} recordedNs={isRecording(file) ? (file.trace?.duration_ns ?? 0) : null} />}
      <div class="cards">
        {(!filter.at || filter.at === 'peak') && <FunctionRanking file={file} filter={filter} />}
        {/* What is live at a moment is its own peak: one list says it. */}
        {!filter.at && <Ranking title="Largest at the peak" answer={peak.data} metric="peak_bytes" onMore={() => go({ view: 'stacks', sort: 'peak' })} />}
        <Ranking title={filter.at === 'peak' ? 'Largest at the peak' : filter.at ? 'Largest then' : isRecording(file) ? 'Largest so far' : 'Largest at the end'} answer={stacks.data} metric="outstanding_bytes" onMore={() => go({ view: 'stacks', sort: 'so' })} />
        {!filter.at && <Ranking title="Most allocations" answer={churn.data} metric="total_count" onMore={() => go({ view: 'stacks', sort: 'stc' })} />}
        <Ranking title="Images by live bytes" answer={images.data} metric="outstanding_bytes" onMore={() => go({ view: 'images', sort: 'so' })} isOfImages />
      </div>
      {stacks.data && stacks.data.heaps.length > 0 && <Heaps heaps={stacks.data.heaps} />}
      <JavaScriptNote {...{ file }} />
      <Facts {...{ file }} />
    </div>
  );
}

/** Whether a filter is empty: findings are of the whole recording. */
function isEmpty(filter: Filter): boolean {
  return Object.keys(filter).every((name) => name === 'lang_frames');
}

/**
 * Whether a filter selects among the blocks of a moment: the peak is that of all blocks, and the
 * amounts are the part that passes.
 */
function isPart(filter: Filter): boolean {
  return Boolean(filter.temporary || filter.lifetime || filter.size || filter.require_frames || filter.innermost_frames);
}

/** `1,234 blocks ± 99`. */
function things(row: object, name: string, what: string): string {
  return withHalf(row, name, (count) => plural(count, what), formatCount);
}

/** Whether the recording goes on: what is shown is not its end. */
function isRecording(file: TraceViewProps['file']): boolean {
  return file.session?.state === 'recording' || file.session?.state === 'full';
}

interface TotalsCardsProps {
  totals: Totals;
  isPart: boolean;
  isMoment: boolean;
  /** Time up to which a recording that goes on is shown; null: it has ended. */
  recordedNs: number | null;
}

function TotalsCards({ totals, isPart, isMoment, recordedNs }: TotalsCardsProps) {
  const cards: [string, string, string, (() => void) | null][] = [
    [isPart ? 'Of the peak' : 'Peak', amountText(totals, 'peak_bytes'), `${exactAmount(totals, 'peak_bytes')} in ${things(totals, 'peak_count', 'block')} at ${formatDuration(totals.peak_time_ns)}`, () => go({ at: 'peak', range: [] })],
    [isMoment ? 'Live then' : recordedNs !== null ? `Live after ${formatDuration(recordedNs)}` : 'Live at the end', amountText(totals, 'outstanding_bytes'), `${exactAmount(totals, 'outstanding_bytes')} in ${things(totals, 'outstanding_count', 'block')}`, () => go({ view: 'leaks' })],
    ['Allocated in all', amountText(totals, 'alloc_bytes'), `${exactAmount(totals, 'alloc_bytes')} in ${things(totals, 'alloc_count', 'allocation')}`, null],
    ['Allocations', amountText(totals, 'alloc_count'), `${things(totals, 'free_count', 'free')}, ${amountText(totals, 'realloc_count')} by realloc`, null],
    isEstimate(totals)
      ? ['Temporary', 'not known', 'what a thread does between two samples is not seen', null]
      : ['Temporary', formatPercent(totals.temporary_count, totals.alloc_count), `${formatCount(totals.temporary_count)} freed before the thread's next one`, () => go({ temporary: true, view: 'stacks', sort: 'stc' })],
  ];
  return (
    <div class="totals">
      {(isMoment ? cards.slice(1, 2) : cards).map(([title, value, exact, onClick]) => (
        <button key={title} type="button" class="total" title={exact} disabled={!onClick} onClick={() => onClick?.()}>
          <span>{title}</span><strong>{value}</strong><span class="quiet">{belowTotal(exact)}</span>
        </button>
      ))}
    </div>
  );
}

/** Text below a total: the counts, or when it was; a file of another tool may not tell all counts. */
function belowTotal(exact: string): string {
  if (!exact.includes(UNKNOWN)) return exact.replace(/^[\d,]+ bytes?( ± [\d,]+ bytes?)? in /, '');
  return / (at \S.*)$/.exec(exact)?.[1] ?? 'the file does not tell all of it';
}

interface RankingProps {
  title: string;
  answer: ReportAnswer | null;
  metric: keyof Amounts;
  onMore: () => void;
  /** Whether the groups are images, not stacks. */
  isOfImages?: boolean;
}

function Ranking({ title, answer, metric, onMore, isOfImages }: RankingProps) {
  const address = useAddress();
  const whole = answer?.all[metric] ?? 0;
  const open = (group: Group) => {
    const first = group.frames[0];
    if (!isOfImages) go({ view: 'stacks', select: group.id ?? '', sort: metric === 'peak_bytes' ? 'peak' : metric === 'total_count' ? 'stc' : 'so' });
    else if (first) go({ ...addedFilter(address, { innermost_frames: [framePattern({ ...first, symbol: null })] }), view: 'stacks' });
  };
  return (
    <section class="card">
      <header><h2>{title}</h2><button type="button" class="button" onClick={onMore}>Show all</button></header>
      <ol class={`ranking${isEstimate(answer?.all ?? null) ? ' is-estimate' : ''}`}>
        {(answer?.groups ?? []).filter((group) => group[metric] > 0).map((group) => (
          <li key={group.id}>
            <button type="button" onClick={() => open(group)} title={group.frames.map(frameName).join('\n')}>
              <span class="bar-back"><i style={{ width: `${whole === 0 ? 0 : (group[metric] * 100) / whole}%` }} /></span>
              <span class="amount" title={exactAmount(group, metric)}>{amountText(group, metric)}</span>
              <span class="percent">{formatPercent(group[metric], whole)}</span>
              {isOfImages ? <ImageName module={group.frames[0]?.module ?? null} /> : <StackName frames={group.frames} own={group.own} lines={group.own_lines} frameCount={group.frame_count} showsModule={group.frames.length === 1} />}
            </button>
          </li>
        ))}
        {answer && answer.groups.every((group) => group[metric] === 0) && <li class="quiet">nothing</li>}
      </ol>
    </section>
  );
}

/** Number of stacks whose own functions are summed. */
const OWN_STACKS = 1000;

interface OwnSum {
  frame: Frame;
  peak_bytes: number;
  peak_count: number;
  peak_bytes_plus_minus: number;
  peak_count_plus_minus: number;
}

/**
 * Ranking of own functions by live bytes at the peak, for programs whose amounts are spread over
 * many stacks.
 */
function FunctionRanking({ file, filter }: Pick<TraceViewProps, 'file' | 'filter'>) {
  const address = useAddress();
  const { data } = useAnswer<ReportAnswer>('/api/report', { file: file.file, filter, by: 'stacks', sort: 'peak', descending: true, offset: 0, limit: OWN_STACKS, match: '', frames_max: 4 }, file.generation);
  const rows = useMemo(() => {
    const sums = new Map<string, OwnSum>();
    for (const group of data?.groups ?? []) {
      const { own } = group;
      if (!own || group.peak_bytes === 0) continue;
      // A function's lines are one entry; functions without names are distinguished by their lines.
      const key = isNameless(own) ? `${frameName(own)} ${framePlace(own)}` : frameName(own);
      const sum = sums.get(key) ?? { frame: own, peak_bytes: 0, peak_count: 0, peak_bytes_plus_minus: 0, peak_count_plus_minus: 0 };
      sums.set(key, {
        frame: sum.frame, peak_bytes: sum.peak_bytes + group.peak_bytes, peak_count: sum.peak_count + group.peak_count,
        peak_bytes_plus_minus: halfOfBoth(sum.peak_bytes_plus_minus, plusMinus(group, 'peak_bytes')), peak_count_plus_minus: halfOfBoth(sum.peak_count_plus_minus, plusMinus(group, 'peak_count')),
      });
    }
    return [...sums].sort(([, one], [, other]) => other.peak_bytes - one.peak_bytes).slice(0, 8);
  }, [data]);
  const whole = data?.all.peak_bytes ?? 0;
  if (data && rows.length === 0) return null;
  return (
    <section class="card">
      <header>
        <h2 title={data && data.match_count > OWN_STACKS ? `of the ${formatCount(OWN_STACKS)} largest stacks` : 'each stack counts for the innermost function that is the program’s own'}>The program's own functions at the peak</h2>
        <button type="button" class="button" onClick={() => go({ view: 'functions', sort: 'peak' })}>Show all</button>
      </header>
      <ol class={`ranking${isEstimate(data?.all ?? null) ? ' is-estimate' : ''}`}>
        {rows.map(([key, sum]) => (
          <li key={key}>
            <button type="button" onClick={() => go({ ...addedFilter(address, { require_frames: [framePattern(sum.frame)] }), view: 'stacks', sort: 'peak' })} title={`${key}\n${exactAmount(sum, 'peak_bytes')} in ${things(sum, 'peak_count', 'block')}; a click shows all stacks that pass through it`}>
              <span class="bar-back"><i style={{ width: `${whole === 0 ? 0 : (sum.peak_bytes * 100) / whole}%` }} /></span>
              <span class="amount">{amountText(sum, 'peak_bytes')}</span>
              <span class="percent">{formatPercent(sum.peak_bytes, whole)}</span>
              <FrameName frame={sum.frame} showsPlace={isNameless(sum.frame)} isOwn />
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** Heaps listed before the user opens the rest. */
const HEAPS_SHOWN = 10;

function Heaps({ heaps: given }: { heaps: HeapTotals[] }) {
  const address = useAddress();
  const [showsAll, setShowsAll] = useState(false);
  const heaps = [...given].sort((one, other) => (other.peak_bytes ?? 0) - (one.peak_bytes ?? 0)).slice(0, showsAll ? 1000 : HEAPS_SHOWN);
  return (
    <section class="card is-wide">
      <header><h2>Processes and heaps</h2>{given.length > HEAPS_SHOWN && <button type="button" class="button" onClick={() => setShowsAll(!showsAll)}>{showsAll ? `the largest ${HEAPS_SHOWN}` : `all ${formatCount(given.length)}`}</button>}</header>
      <table class="plain">
        <thead><tr><th>Process</th><th>Heap</th><th>Allocs</th><th>Total</th><th>Reallocs</th><th>Live</th><th>Live bytes</th><th>Peak</th></tr></thead>
        <tbody>
          {heaps.map((heap) => (
            <tr key={`${heap.pid} ${heap.heap}`}>
              <td><button type="button" class="link" title={`--pid ${heap.pid}`} onClick={() => go(addedFilter(address, { pid: [String(heap.pid)] }))}>{heap.process} ({heap.pid})</button></td>
              <td>{heap.heap}</td>
              <td>{amountText(heap, 'alloc_count')}</td>
              <td title={exactAmount(heap, 'alloc_bytes')}>{amountText(heap, 'alloc_bytes')}</td>
              <td>{amountText(heap, 'realloc_count')}</td>
              <td>{amountText(heap, 'outstanding_count')}</td>
              <td title={exactAmount(heap, 'outstanding_bytes')}>{amountText(heap, 'outstanding_bytes')}</td>
              <td title={`${exactAmount(heap, 'peak_bytes')} at ${formatDuration(heap.peak_time_ns)}`}>{amountText(heap, 'peak_bytes')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Programs whose own objects are not in the heaps that a trace records. */
const JAVASCRIPT = ['node', 'nodejs', 'electron'];

/** Note on where the objects of a JavaScript program can be seen. */
function JavaScriptNote({ file }: Pick<TraceViewProps, 'file'>) {
  const process = file.trace?.processes.find(({ name }) => JAVASCRIPT.includes(name));
  if (!process) return null;
  return (
    <p class="quiet is-wide">
      {process.name} keeps JavaScript objects in a heap of its own, which no trace of malloc shows: <code>heapr snapshot take PID</code> while it runs, then <code>heapr view</code> on two or more of these.
    </p>
  );
}

/** Words for the recorder's facts on its machine. */
const SYSTEM_WORDS: Record<string, string> = {
  kernel: 'Kernel', machine: 'Machine', distribution: 'System', cpu_count: 'Processors', memory_bytes: 'Memory', page_bytes: 'Page size',
};

function Facts({ file }: Pick<TraceViewProps, 'file'>) {
  const trace = file.trace;
  if (!trace) return null;
  const facts: [string, string][] = [
    ['Command', shellWords(trace.command_line)], ['Own memory', (trace.own_memory ?? []).join(': ')], ['File', `${file.path} (${formatBytes(file.file_bytes)})`],
    ['Started', trace.start_unix_ns > 0 ? new Date(trace.start_unix_ns / 1e6).toISOString().replace('T', ' ').replace(/\.\d+Z$/, ' UTC') : ''],
    ['Duration', formatDuration(trace.duration_ns)], ['Events', `${formatCount(trace.event_count)}${trace.is_complete ? '' : file.session?.state === 'recording' || file.session?.state === 'full' ? ' so far' : ', the recording was broken off'}`],
    ['Processes', formatCount(trace.processes.length)], ['Threads', formatCount(trace.threads.length)], ['Modules', formatCount(trace.modules.length)],
    ...Object.entries(trace.system ?? {}).map(([key, value]): [string, string] => [
      SYSTEM_WORDS[key] ?? key.replace(/_(bytes|count)$/, '').replaceAll('_', ' '), typeof value === 'number' ? (key.endsWith('_bytes') ? formatBytes(value) : formatCount(value)) : (value ?? ''),
    ]),
  ];
  return (
    <section class="card is-wide">
      <header><h2>Recording</h2></header>
      <dl class="facts">{facts.filter(([, value]) => value !== '').map(([key, value]) => <div key={key}><dt>{key}</dt><dd>{value}</dd></div>)}</dl>
    </section>
  );
}
