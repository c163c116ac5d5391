/** The flame graph of what the filters choose, with its switches. */
import { useEffect, useMemo } from 'preact/hooks';
import { addedFilter } from '../address/address';
import { go, useAddress } from '../address/use-address';
import type { FlameAnswer } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { FlameGraph, zoomTrail } from '../flame/flame-graph';
import { flameLayout, matching, nodeImage, nodeName } from '../flame/flame-layout';
import { exactBytes, formatBytes, formatCount, formatPercent } from '../format';
import { Message } from '../frame/message';
import { Search } from '../frame/search';
import type { TraceViewProps } from './trace-page';

export const FLAME_VALUES: [string, string][] = [
  ['outstanding_bytes', 'Outstanding bytes'], ['outstanding_count', 'Outstanding blocks'], ['peak_bytes', 'Bytes at the peak'], ['peak_count', 'Blocks at the peak'],
  ['total_bytes', 'Total bytes'], ['total_count', 'All allocations'], ['temporary_bytes', 'Temporary bytes'], ['temporary_count', 'Temporary allocations'], ['realloc_count', 'Reallocations'],
];

/** The direction and shape switches, shared with the difference flame graph. */
export function FlameSwitches() {
  const address = useAddress();
  const isInverted = address.direction === 'bottom-up';
  return (
    <>
      <select aria-label="Flame graph counts" value={address.value} onChange={(event) => go({ value: event.currentTarget.value })}>
        {FLAME_VALUES.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
      </select>
      <div class="switch" role="group" aria-label="Shape">
        <button type="button" aria-pressed={address.shape === 'flame'} title="The root at the bottom" onClick={() => go({ shape: 'flame' })}>Flame</button>
        <button type="button" aria-pressed={address.shape === 'icicle'} title="The root at the top" onClick={() => go({ shape: 'icicle' })}>Icicle</button>
      </div>
      <label class="check" title="From the allocating frame to its callers"><input type="checkbox" checked={isInverted} onChange={() => go({ direction: isInverted ? 'top-down' : 'bottom-up', root: '' })} /> inverted</label>
      <label class="check" title="Frames that call themselves are one box"><input type="checkbox" checked={address.recursion} onChange={() => go({ recursion: !address.recursion, root: '' })} /> collapse recursion</label>
    </>
  );
}

export function FlameView({ file, filter, onCommand }: TraceViewProps) {
  const address = useAddress();
  const value = FLAME_VALUES.some(([key]) => key === address.value) ? address.value : 'outstanding_bytes';
  const body = {
    file: file.file, filter, value, direction: address.direction === 'bottom-up' ? 'bottom-up' : 'top-down', collapse_recursion: address.recursion,
    root: null as string | null, focus: address.focus || null, least_share: 0.0002, nodes_max: 30000,
  };
  const whole = useAnswer<FlameAnswer>('/api/flame', body, file.generation);
  const wholeLayout = useMemo(() => (whole.data ? flameLayout(whole.data) : null), [whole.data]);
  const zoomed = wholeLayout && address.root !== '' ? wholeLayout.byId.get(address.root) : undefined;
  // What was too small for the whole picture is asked for when its part fills the width.
  const isCut = address.root !== '' && wholeLayout !== null && (zoomed === undefined || hasLeftOut(wholeLayout.answer, zoomed));
  const part = useAnswer<FlameAnswer>('/api/flame', isCut ? { ...body, root: address.root } : null, file.generation);
  const partLayout = useMemo(() => (isCut && part.data && part.data.nodes.id[0] === address.root ? flameLayout(part.data) : null), [isCut, part.data, address.root]);
  const layout = partLayout ?? wholeLayout;
  const match = useMemo(() => (layout ? matching(layout, address.search) : null), [layout, address.search]);
  const error = whole.error ?? part.error;
  useEffect(() => onCommand(whole.data?.command ?? null, error?.message ?? null), [whole.data, error]);
  useEffect(() => () => onCommand(null, null), []);

  const amount = (number: number) => (value.endsWith('_bytes') ? formatBytes(number) : formatCount(number));
  const trail = wholeLayout && address.root !== '' ? zoomTrail(wholeLayout, address.root) : [];
  const selected = layout?.byId.get(address.select) ?? -1;
  return (
    <section class="flame">
      <div class="view-tools">
        <FlameSwitches />
        <Search value={address.search} onChange={(search) => go({ search }, true)} label="Search symbol or image" waitMs={60} />
        {match && layout && <span class="quiet" role="status">{formatCount(match.count)} match, {formatPercent(match.value, layout.total)}</span>}
        <span class="grow" />
        {layout && <span class="quiet" title={value.endsWith('_bytes') ? exactBytes(whole.data?.total ?? 0) : ''}>{amount(whole.data?.total ?? 0)} in all</span>}
        {(whole.isLoading || part.isLoading) && <span class="quiet" role="status">loading…</span>}
      </div>
      {(trail.length > 0 || address.focus) && (
        <nav class="trail" aria-label="Zoomed to">
          {address.focus && <button type="button" class="chip" onClick={() => go({ focus: '', root: '' })}>focused on one frame ×</button>}
          {trail.map((step, at) => <button key={step.id} type="button" disabled={at === trail.length - 1} onClick={() => go({ root: step.id })}>{step.name}</button>)}
        </nav>
      )}
      {error && <Message kind="error">{error.message}</Message>}
      {layout && layout.total > 0 && (
        <FlameGraph
          layout={layout} isUpward={address.shape !== 'icicle'} isMatch={match?.isMatch ?? null} zoom={partLayout ? '' : address.root}
          onZoom={(id) => go({ root: id === address.root ? '' : id })} selected={address.select} onSelect={(select) => go({ select }, true)}
          label={`Flame graph of ${FLAME_VALUES.find(([key]) => key === value)?.[1] ?? value}`}
          describe={(node) => {
            const nodeValue = layout.widths[node] ?? 0;
            const self = layout.answer.nodes.self?.[node] ?? 0;
            return [`${amount(nodeValue)}, ${formatPercent(nodeValue, whole.data?.total ?? 0)} of all`, ...(self > 0 ? [`itself ${amount(self)}`] : [])];
          }}
        />
      )}
      {layout && layout.total === 0 && <p class="empty">Nothing is left by the filters.</p>}
      {layout && selected > 0 && (
        <div class="selection">
          <strong>{nodeName(layout, selected)}</strong>
          <span class="quiet">{nodeImage(layout, selected)}</span>
          <span>{amount(layout.widths[selected] ?? 0)} ({formatPercent(layout.widths[selected] ?? 0, whole.data?.total ?? 0)})</span>
          <span class="grow" />
          <SelectionActions layout={layout} node={selected} />
        </div>
      )}
    </section>
  );
}

function SelectionActions({ layout, node }: { layout: ReturnType<typeof flameLayout>; node: number }) {
  const address = useAddress();
  const frame = layout.answer.frames[layout.answer.nodes.frame[node] ?? -1];
  if (!frame) return null;
  const symbol = layout.answer.names[frame.symbol] ?? '';
  const image = nodeImage(layout, node);
  const pattern = symbol === '' ? (image === '' ? '' : `${image}!`) : image === '' ? symbol : `${image}!${symbol}`;
  return (
    <>
      <button type="button" class="button" onClick={() => go({ root: layout.answer.nodes.id[node] ?? '' })}>Zoom</button>
      <button type="button" class="button" onClick={() => go({ view: 'frames', select: frame.id })}>Callers and callees</button>
      {pattern && <button type="button" class="button" title={`--require-frames '${pattern}'`} onClick={() => go({ ...addedFilter(address, { require_frames: [pattern] }), root: '' })}>Only stacks with it</button>}
      {pattern && <button type="button" class="button" title={`--cull-frames '${pattern}'`} onClick={() => go({ ...addedFilter(address, { cull_frames: [pattern] }), root: '' })}>Cull</button>}
    </>
  );
}

/** True if something below `node` was too small to be sent. */
function hasLeftOut(flame: FlameAnswer, node: number): boolean {
  const { parent, left_out: leftOut } = flame.nodes;
  const isBelow = new Uint8Array(parent.length);
  isBelow[node] = 1;
  for (let at = node; at < parent.length; at += 1) {
    const above = parent[at] ?? -1;
    if (above >= node && isBelow[above]) isBelow[at] = 1;
    if (isBelow[at] && (leftOut?.[at] ?? 0) > 0) return true;
  }
  return false;
}
