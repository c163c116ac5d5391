/** How many allocations, and bytes, of which size and lifetime. A click on a bar filters by it. */
import { useEffect, useState } from 'preact/hooks';
import { go } from '../address/use-address';
import type { Histogram, HistogramBucket } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { formatBytes, formatDuration, formatPercent } from '../format';
import { Message } from '../frame/message';
import { amountText, exactAmount, isEstimate } from './estimate';
import type { TraceViewProps } from './trace-page';

type Counted = 'total_count' | 'total_bytes' | 'outstanding_count' | 'outstanding_bytes';
const COUNTED: [Counted, string][] = [
  ['total_count', 'Allocations'], ['total_bytes', 'Bytes'], ['outstanding_count', 'Live blocks'], ['outstanding_bytes', 'Live bytes'],
];

export function HistogramView({ file, filter, onCommand }: TraceViewProps) {
  const [counted, setCounted] = useState<Counted>('total_count');
  const { data, error, isLoading } = useAnswer<{ command: string | null; histograms: Histogram[] }>('/api/histograms', { file: file.file, filter }, file.generation);
  useEffect(() => onCommand(data?.command ?? null, error?.message ?? null), [data, error]);
  useEffect(() => () => onCommand(null, null), []);
  return (
    <section class={`histograms${isLoading ? ' is-old' : ''}`}>
      <div class="view-tools">
        <select aria-label="Histograms count" value={counted} onChange={(event) => setCounted(event.currentTarget.value as Counted)}>
          {COUNTED.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
        </select>
        <span class="quiet">A bar filters by it.</span>
      </div>
      {error && <Message kind="error">{error.message}</Message>}
      <div class="cards">
        {(data?.histograms ?? []).map((histogram) => <HistogramBars key={histogram.of} histogram={histogram} counted={counted} />)}
      </div>
    </section>
  );
}

/** A histogram as bars that filter; also of a native snapshot. */
export function HistogramBars({ histogram, counted, title }: { histogram: Histogram; counted: Counted; title?: string }) {
  const whole = histogram.buckets.reduce((sum, bucket) => sum + bucket[counted], 0);
  const most = Math.max(1, ...histogram.buckets.map((bucket) => bucket[counted]));
  const isTime = histogram.unit === 'ns';
  const edge = isTime ? formatDuration : formatBytes;
  const label = (bucket: HistogramBucket) => (bucket.from === bucket.last ? edge(bucket.from) : `${edge(bucket.from)} – below ${edge(bucket.last + 1)}`);
  const choose = (bucket: HistogramBucket) => {
    if (isTime) go({ lifetime: [`${bucket.from}ns`, `${bucket.last + 1}ns`] });
    else go({ size: [String(bucket.from), String(bucket.last + 1)] });
  };
  return (
    <section class="card is-wide">
      <header><h2>{title ?? (isTime ? 'Lifetime' : histogram.of === 'size' ? 'Size' : histogram.of)}</h2></header>
      <ol class={`bars${histogram.buckets.some(isEstimate) ? ' is-estimate' : ''}`}>
        {histogram.buckets.map((bucket) => (
          <li key={bucket.from}>
            <button type="button" title={`${exactAmount(bucket, counted)}: click to count only these`} onClick={() => choose(bucket)}>
              <span class="bucket">{label(bucket)}</span>
              <span class="bar"><i class={bucket[counted] === 0 ? 'is-none' : ''} style={{ width: `${(bucket[counted] * 100) / most}%` }} /></span>
              <span class="amount">{amountText(bucket, counted)}</span>
              <span class="percent">{formatPercent(bucket[counted], whole)}</span>
            </button>
          </li>
        ))}
        {histogram.buckets.length === 0 && <li class="quiet">nothing</li>}
      </ol>
    </section>
  );
}
