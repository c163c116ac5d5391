/** Statistics of one native snapshot: by heap, process and thread, and its sizes and ages. */
import { useEffect } from 'preact/hooks';
import type { Histogram, NativePart, NativeStatistics } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { formatCount, formatPercent } from '../format';
import { Message } from '../frame/message';
import { amountText, exactAmount } from '../trace/estimate';
import { HistogramBars } from '../trace/histogram-bars';
import { momentFilter } from './native-columns';
import type { NativeViewProps } from './view-props';

export function NativeStatisticsView({ file, filter, shown, onCommand }: NativeViewProps) {
  const { data, error, isLoading } = useAnswer<NativeStatistics>('/api/native/statistics', { file: file.file, number: shown.number, filter: momentFilter(filter) });
  useEffect(() => onCommand(data?.command ?? null, error?.message ?? null), [data, error]);
  useEffect(() => () => onCommand(null, null), []);
  if (error) return <Message kind="error">{error.message}</Message>;
  if (!data) return <p class="empty" role="status">Loading…</p>;
  const histograms = [data.sizes, data.ages].filter((histogram): histogram is Histogram => histogram !== null);
  return (
    <section class={`histograms${isLoading ? ' is-old' : ''}`}>
      <div class="cards">
        <div class="parts">
          <Parts title="Heaps" parts={data.heaps} whole={data.total_bytes} />
          <Parts title="Processes" parts={data.processes} whole={data.total_bytes} />
          <Parts title="Threads that allocated" parts={data.threads} whole={data.total_bytes} />
        </div>
        {histograms.map((histogram) => <HistogramBars key={histogram.of} histogram={histogram} counted="outstanding_bytes" title={histogram.unit === 'ns' ? 'Age' : 'Size'} />)}
      </div>
    </section>
  );
}

function Parts({ title, parts, whole }: { title: string; parts: NativePart[]; whole: number }) {
  return (
    <section class="card">
      <header><h2>{title}</h2></header>
      <table class="plain">
        <thead><tr><th>Name</th><td /><th>Bytes</th><th>Share</th><th>Blocks</th></tr></thead>
        <tbody>
          {parts.slice(0, 100).map((part) => (
            <tr key={part.name}><td>{part.name}</td><td /><td title={exactAmount(part, 'block_bytes')}>{amountText(part, 'block_bytes')}</td><td>{formatPercent(part.block_bytes, whole)}</td><td>{amountText(part, 'block_count')}</td></tr>
          ))}
        </tbody>
      </table>
      {parts.length > 100 && <p class="quiet">and {formatCount(parts.length - 100)} more</p>}
    </section>
  );
}
