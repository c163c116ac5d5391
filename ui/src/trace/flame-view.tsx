/** Flame graph of the filtered allocations, with its switches. */
import { useEffect, useMemo } from 'preact/hooks';
import { addedFilter } from '../address/address';
import { go, useAddress } from '../address/use-address';
import { METRICS } from '../api/metrics';
import { FlameGraph, zoomTrail } from '../flame/flame-graph';
import { type FlameLayout, matching, nodeImage, nodeName } from '../flame/flame-layout';
import { useZoomable } from '../flame/use-zoomable';
import { exactBytes, formatBytes, formatCount, formatPercent } from '../format';
import { Message } from '../frame/message';
import { Search } from '../frame/search';
import { linkedName } from '../image-links';
import { folded } from '../symbol-text';
import type { TraceViewProps } from './view-props';
import { defaultValue } from './default-metric';
import { within } from './estimate';
import { CollapsedImages, LibrarySwitch } from './library-switch';
import { LineSwitch } from './line-switch';
import { metricTitle } from './metric-columns';

export const FLAME_VALUES: [string, string][] = [
  ...METRICS.map((metric): [string, string] => [metric.name, metricTitle(metric)]), ['temporary_bytes', 'Temporary size'],
];

/** Switches of direction and shape, shared with the difference flame graph. */
export function FlameSwitches({ value }: { value: string }) {
  const address = useAddress();
  const isInverted = address.direction === 'bottom-up';
  return (
    <>
      <select aria-label="Flame graph counts" value={value} onChange={(event) => go({ value: event.currentTarget.value })}>
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
  const value = FLAME_VALUES.some(([key]) => key === address.value) ? address.value : defaultValue(file, filter);
  const body = {
    file: file.file, filter, value, direction: address.direction === 'bottom-up' ? 'bottom-up' : 'top-down', collapse_recursion: address.recursion, ...(address.lines ? { by_line: true } : {}),
    focus: address.focus || null, least_share: 0.0002, nodes_max: 30000,
  };
  const { layout, whole, question, isPart, error, isLoading } = useZoomable('/api/flame', body, address.root, file.generation, { libraries: !address.libraries && address.focus === '', images: address.collapsed });
  const total = whole?.answer.total ?? 0;
  const match = useMemo(() => (layout ? matching(layout, address.search) : null), [layout, address.search]);
  useEffect(() => onCommand(whole?.answer.command ?? null, error?.message ?? null), [whole, error]);
  useEffect(() => () => onCommand(null, null), []);

  const isBytes = value.endsWith('_bytes');
  const amount = (number: number, half: number | undefined) => within(number, half, isBytes ? formatBytes : formatCount);
  const amountOf = (node: number) => amount(layout?.widths[node] ?? 0, layout?.answer.nodes.value_plus_minus?.[node]);
  const trail = whole && address.root !== '' ? zoomTrail(whole, address.root) : [];
  const selected = layout?.byId.get(address.select) ?? -1;
  return (
    <section class="flame">
      <div class="view-tools">
        <FlameSwitches value={value} />
        <LibrarySwitch />
        <LineSwitch />
        <CollapsedImages />
        <Search value={address.search} onChange={(search) => go({ search }, true)} label="Search symbol or image" waitMs={60} />
        {match && layout && <MatchSteps layout={layout} match={match} total={layout.total} />}
        <span class="grow" />
        {layout && <span class="quiet" title={isBytes ? within(total, whole?.answer.total_plus_minus, exactBytes) : ''}>{amount(total, whole?.answer.total_plus_minus)} in all</span>}
        {isLoading && <span class="quiet" role="status">loading…</span>}
      </div>
      <Trail steps={trail} focus={whole ? nameOfFrame(whole, address.focus) : ''} />
      {error && <Message kind="error">{error.message}</Message>}
      {layout && layout.total > 0 && (
        <FlameGraph
          layout={layout} question={question} isUpward={address.shape !== 'icicle'} isMatch={match?.isMatch ?? null} zoom={isPart ? '' : address.root}
          onZoom={(id) => go({ root: id === address.root ? '' : id })} selected={address.select} onSelect={(select) => go({ select }, true)}
          amount={amountOf}
          label={`Flame graph of ${FLAME_VALUES.find(([key]) => key === value)?.[1] ?? value}`}
          describe={(node) => {
            const nodeValue = layout.widths[node] ?? 0;
            const self = layout.answer.nodes.self?.[node] ?? 0;
            return [`${amountOf(node)}, ${formatPercent(nodeValue, total)} of all`, ...(self > 0 ? [`itself ${amount(self, layout.answer.nodes.self_plus_minus?.[node])}`] : [])];
          }}
        />
      )}
      {layout && layout.total === 0 && <p class="empty">{value.startsWith('outstanding') && Object.keys(filter).every((name) => name === 'lang_frames') ? 'Nothing is live: all of it was freed.' : 'No allocation is left by the filters.'}</p>}
      {layout && layout.total > 0 && selected <= 0 && <div class="selection quiet">A click selects a frame, a double click zooms to it.</div>}
      {layout && selected > 0 && (
        <div class="selection">
          <strong>{nodeName(layout, selected)}</strong>
          <span class="quiet">{linkedName(nodeImage(layout, selected))}</span>
          <span>{amountOf(selected)} ({formatPercent(layout.widths[selected] ?? 0, total)})</span>
          <span class="grow" />
          <SelectionActions layout={layout} node={selected} />
        </div>
      )}
    </section>
  );
}

/**
 * Number of matches, and steps from one to the next: from the root outwards, from left to right.
 */
export function MatchSteps({ layout, match, total }: { layout: FlameLayout; match: { isMatch: Uint8Array; count: number; value: number }; total: number }) {
  const address = useAddress();
  const order = useMemo(() => layout.rows.flatMap((row) => [...row].filter((node) => match.isMatch[node] === 1)), [layout, match]);
  const at = order.indexOf(layout.byId.get(address.select) ?? -1);
  const step = (by: number) => {
    const next = order[at < 0 ? (by > 0 ? 0 : order.length - 1) : (at + by + order.length) % order.length];
    if (next !== undefined) go({ select: layout.answer.nodes.id[next] ?? '' }, true);
  };
  return (
    <>
      <span class="quiet" role="status">{at >= 0 ? `${formatCount(at + 1)} of ${formatCount(match.count)}` : formatCount(match.count)} match, {formatPercent(match.value, total)}</span>
      <button type="button" class="button" id="match-before" disabled={match.count === 0} aria-label="Previous match" title="Previous match (Shift N)" onClick={() => step(-1)}>‹</button>
      <button type="button" class="button" id="match-next" disabled={match.count === 0} aria-label="Next match" title="Next match (N)" onClick={() => step(1)}>›</button>
    </>
  );
}

/** Returns the name of a frame by its id; empty if it is not in the picture. */
function nameOfFrame(layout: FlameLayout, id: string): string {
  const { frames, nodes } = layout.answer;
  const frame = frames.findIndex((candidate) => candidate.id === id);
  const node = frame < 0 ? -1 : nodes.frame.indexOf(frame);
  return node < 0 ? '' : folded(nodeName(layout, node));
}

/** Path from the whole to the zoomed node; each step leads back. */
export function Trail({ steps, focus = '' }: { steps: { id: string; name: string }[]; focus?: string }) {
  const address = useAddress();
  if (steps.length === 0 && !address.focus) return null;
  return (
    <nav class="trail" aria-label="Zoomed to">
      {address.focus && <button type="button" class="chip" onClick={() => go({ focus: '', root: '' })}>focused on {focus || 'one frame'} <span aria-hidden="true">×</span></button>}
      {steps.map((step, at) => <button key={step.id} type="button" disabled={at === steps.length - 1} onClick={() => go({ root: step.id })}>{step.name}</button>)}
    </nav>
  );
}

/**
 * Whether the frame of a node allocates by itself anywhere, because culling removes only such
 * frames. A difference does not say it.
 */
function isInnermost(layout: FlameLayout, node: number): boolean {
  const { frame, self } = layout.answer.nodes;
  return self === undefined || frame.some((other, at) => other === frame[node] && (self[at] ?? 0) > 0);
}

/** Actions on the chosen node, shared with the difference flame graph. */
export function SelectionActions({ layout, node }: { layout: FlameLayout; node: number }) {
  // Frames of a difference stand for those of both files, which share only their names.
  const isDifference = layout.answer.nodes.before !== undefined;
  const address = useAddress();
  const frame = layout.answer.frames[layout.answer.nodes.frame[node] ?? -1];
  if (!frame) return null;
  const known = layout.answer.names[frame.symbol] ?? '';
  const symbol = isDifference && known === '?' ? '' : known;
  const image = nodeImage(layout, node);
  const pattern = symbol === '' ? (image === '' ? '' : `${image}!`) : image === '' ? symbol : `${image}!${symbol}`;
  return (
    <>
      <button type="button" class="button" onClick={() => go({ root: layout.answer.nodes.id[node] ?? '' })}>Zoom</button>
      {(!isDifference || symbol !== '') && (
        <button
          type="button" class="button" title={`Only ${address.direction === 'bottom-up' ? 'its callers' : 'what it calls'}, taken together from all places where it stands`}
          onClick={() => go({ focus: isDifference ? pattern : frame.id, root: '', select: '' })}
        >
          Focus
        </button>
      )}
      {(!isDifference || symbol !== '') && <button type="button" class="button" onClick={() => go({ view: 'functions', select: isDifference ? pattern : frame.id, sort: '', match: '', hidden: [] })}>Callers and callees</button>}
      {isDifference && symbol === '' && image !== '' && (
        <button type="button" class="button" title="Without a name it cannot be told apart from other code of its image in both files" onClick={() => go({ view: 'frames', select: '', sort: '', match: image, hidden: [] })}>Frames of the image</button>
      )}
      {!isDifference && image !== '' && !address.collapsed.includes(image) && (
        <button type="button" class="button" title={`Frames of ${image} that call one another are one box`} onClick={() => go({ collapsed: [...address.collapsed, image], root: '', select: '' })}>Collapse {linkedName(image)}</button>
      )}
      {pattern && <button type="button" class="button" title={`--require-frames '${pattern}'`} onClick={() => go({ ...addedFilter(address, { require_frames: [pattern] }), root: '' })}>Only stacks with it</button>}
      {pattern && (
        <button
          type="button" class="button" disabled={!isInnermost(layout, node)} title={isInnermost(layout, node) ? `--cull-frames '${pattern}'` : 'Culling removes innermost frames, and this one always calls another'}
          onClick={() => go({ ...addedFilter(address, { cull_frames: [pattern] }), root: '' })}
        >
          Cull
        </button>
      )}
    </>
  );
}
