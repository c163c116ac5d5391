/**
 * Allocations by where they begin and end relative to the brushed range: AIFI, AIFO, AOFI, AOFO.
 */
import { useEffect } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import type { TypeSum } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { exactBytes, formatBytes, formatCount, plural } from '../format';
import { CommandLine } from '../filter/filter-bar';
import { Message } from '../frame/message';
import { withHalf } from './estimate';
import type { TraceViewProps } from './view-props';

const MEANINGS: Record<string, { title: string; meaning: string; shape: [number, number] }> = {
  aifi: { title: 'Allocated inside, freed inside', meaning: 'lived and died in the range: churn', shape: [35, 65] },
  aifo: { title: 'Allocated inside, freed outside', meaning: 'came in the range and stayed: growth, maybe a leak', shape: [55, 100] },
  aofi: { title: 'Allocated outside, freed inside', meaning: 'was there before and went: shrinking', shape: [0, 45] },
  aofo: { title: 'Allocated outside, freed outside', meaning: 'was there all the time: the floor', shape: [0, 100] },
};

export function TypesView({ file, filter, onCommand }: TraceViewProps) {
  const address = useAddress();
  const asked = { ...filter };
  delete asked.type;
  const { data, error } = useAnswer<{ types: TypeSum[] }>('/api/types', { file: file.file, filter: asked }, file.generation);
  useEffect(() => onCommand(null, error?.message ?? null), [data, error]);
  const most = Math.max(1, ...(data?.types ?? []).map((type) => type.bytes));
  return (
    <section class="types">
      {address.range.length !== 2 && <Message kind="note">Brush a range on the timeline: then all four types have a meaning.</Message>}
      {error && <Message kind="error">{error.message}</Message>}
      <div class="cards">
        {(data?.types ?? []).map((type) => {
          const known = MEANINGS[type.type];
          const isOn = address.type === type.type;
          return (
            <section key={type.type} class={`card type-card${isOn ? ' is-on' : ''}`}>
              <header>
                <h2><abbr title={known?.title}>{type.type.toUpperCase()}</abbr> <span class="quiet">{known?.title}</span></h2>
                <button type="button" class="button" aria-pressed={isOn} disabled={address.range.length !== 2} onClick={() => go({ type: isOn ? '' : type.type })}>{isOn ? 'shown everywhere' : 'show only these'}</button>
              </header>
              <svg class="type-shape" viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
                <rect class="type-range" x="30" y="0" width="40" height="14" />
                <rect class="type-life" x={known?.shape[0] ?? 0} y="5" width={(known?.shape[1] ?? 0) - (known?.shape[0] ?? 0)} height="4" />
              </svg>
              <p class="type-amount"><strong title={withHalf(type, 'bytes', exactBytes, exactBytes)}>{withHalf(type, 'bytes', formatBytes, formatBytes)}</strong> in {withHalf(type, 'count', (count) => plural(count, 'allocation'), formatCount)}</p>
              <span class="bar"><i style={{ width: `${(type.bytes * 100) / most}%` }} /></span>
              <p class="quiet">{known?.meaning}</p>
              <p>
                <button type="button" class="button" disabled={address.range.length !== 2} onClick={() => go({ type: type.type, view: 'stacks', sort: 'st' })}>Stacks</button>
                <button type="button" class="button" disabled={address.range.length !== 2} onClick={() => go({ type: type.type, view: 'flame', value: 'total_bytes', root: '' })}>Flame graph</button>
              </p>
              <CommandLine command={type.command} />
            </section>
          );
        })}
      </div>
    </section>
  );
}
