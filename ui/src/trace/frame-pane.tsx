/** Pane of a frame with its callers and callees. */
import { addedFilter } from '../address/address';
import { go, useAddress } from '../address/use-address';
import type { Amounts, Filter, FrameAnswer, FrameGroup, OpenFile } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { formatCount, formatPercent } from '../format';
import { Message } from '../frame/message';
import { useTop } from '../frame/use-top';
import { amountText, exactAmount, isEstimate } from './estimate';
import { FrameName } from './frame-name';
import { framePattern, metricOf } from './metric-columns';

export function FramePane({ file, filter, frame, sort }: { file: OpenFile; filter: Filter; frame: string; sort: string }) {
  const address = useAddress();
  const { data, error, isLoading } = useAnswer<FrameAnswer>('/api/frame', { file: file.file, filter, frame, ...(address.lines ? { by_line: true } : {}), sort, limit: 200 });
  if (error) return <Message kind="error">{error.message}</Message>;
  if (!data) return <p class="empty" role="status">Loading…</p>;
  const metric = metricOf(sort);
  const pattern = data.frame && framePattern(data.frame);
  return (
    <section class={`frame-pane${isLoading ? ' is-old' : ''}`} aria-label="Callers and callees">
      <Neighbours title="Callers" frame={frame} groups={data.callers} metric={metric} whole={data.inclusive[metric]} />
      <div class="frame-self">
        {data.frame && <FrameName frame={data.frame} />}
        <p>
          <span title={exactAmount(data.inclusive, metric)}>with callees {amountText(data.inclusive, metric)}</span>{' · '}
          <span title={exactAmount(data.self, metric)}>itself {amountText(data.self, metric)}</span>
        </p>
        <p>
          <button type="button" class="button" onClick={() => go({ view: 'flame', focus: frame, direction: 'bottom-up', root: '' })}>Callers as flame graph</button>
          <button type="button" class="button" onClick={() => go({ view: 'flame', focus: frame, direction: 'top-down', root: '' })}>Callees as flame graph</button>
          {pattern && <button type="button" class="button" onClick={() => go({ ...addedFilter(address, { require_frames: [pattern] }), view: 'stacks', select: '' })}>Stacks with it</button>}
        </p>
      </div>
      <Neighbours title="Callees" frame={frame} groups={data.callees} metric={metric} whole={data.inclusive[metric]} />
    </section>
  );
}

function Neighbours({ title, frame, groups, metric, whole }: { title: string; frame: string; groups: FrameGroup[]; metric: keyof Amounts; whole: number }) {
  const top = useTop<HTMLElement>(frame);
  return (
    <section ref={top} class={`neighbours${groups.some(isEstimate) ? ' is-estimate' : ''}`} aria-label={title}>
      <h2>{title} <span class="quiet">{formatCount(groups.length)}</span></h2>
      <ul>
        {groups.map((group) => (
          <li key={group.id}>
            <button type="button" onClick={() => go({ select: group.id })}>
              <span class="bar-back"><i style={{ width: `${whole === 0 ? 0 : (group[metric] * 100) / whole}%` }} /></span>
              <span class="amount" title={exactAmount(group, metric)}>{amountText(group, metric)}</span>
              <span class="percent">{formatPercent(group[metric], whole)}</span>
              {group.frame ? <FrameName frame={group.frame} /> : <span class="quiet">(not known)</span>}
            </button>
          </li>
        ))}
        {groups.length === 0 && <li class="quiet">none</li>}
      </ul>
    </section>
  );
}
