/** Number and bytes of allocations by size and lifetime. A click on a bar filters by it. */
import { useEffect, useState } from 'preact/hooks';
import type { Histogram } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { Message } from '../frame/message';
import { type Counted, HistogramBars } from './histogram-bars';
import type { TraceViewProps } from './view-props';

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
