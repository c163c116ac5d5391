/** Histogram as bars that filter; also of a native snapshot. */
import { go } from '../address/use-address';
import type { Histogram, HistogramBucket } from '../api/types';
import { formatBytes, formatDuration, formatPercent } from '../format';
import { amountText, exactAmount, isEstimate } from './estimate';

/** Amounts that the bars can show. */
export type Counted = 'total_count' | 'total_bytes' | 'outstanding_count' | 'outstanding_bytes';

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
