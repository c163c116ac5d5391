/**
 * Comparison of two files, or two moments of one: a table of differences or a flame graph of them.
 */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import type { Amounts, DiffAnswer, DiffGroup, Filter, OpenFile } from '../api/types';
import { METRICS } from '../api/metrics';
import { answer } from '../api/use-answer';
import { FlameGraph, zoomTrail } from '../flame/flame-graph';
import { matching, nodeImage, nodeName } from '../flame/flame-layout';
import { useZoomable } from '../flame/use-zoomable';
import { exactBytes, formatBytes, formatCount, formatPercent, formatSignedBytes, formatSignedCount } from '../format';
import { Message } from '../frame/message';
import { SameSwitch } from '../frame/same-switch';
import { Search } from '../frame/search';
import { Split } from '../frame/split';
import type { Column } from '../table/columns';
import { emptyText } from '../table/empty-text';
import { Table } from '../table/table';
import { useTold } from '../table/use-told';
import { useTree } from '../table/use-tree';
import { BuildsView } from './builds-view';
import { ComparedPane } from './compared-pane';
import { amountText, exactAmount, isEstimate, within } from './estimate';
import { FLAME_VALUES, FlameSwitches, MatchSteps, SelectionActions, Trail } from './flame-view';
import { NamedStack } from './stack-name';
import { linkedName } from '../image-links';
import { metricOf, metricTitle } from './metric-columns';
import type { TraceViewProps } from './view-props';

interface Sides {
  before: { file: number; filter: Filter };
  after: { file: number; filter: Filter };
}

const SORTS: [string, string][] = METRICS.filter(({ key }) => key !== '').map((metric) => [metric.key, metricTitle(metric)]);

export function CompareView(props: TraceViewProps) {
  const address = useAddress();
  const others = props.files.filter((file) => file.kind === props.file.kind && file.trace);
  const named = (number: number) => others.find((file) => file.file === number);
  const [before, after] = named(address.before) ? [named(address.before) ?? props.file, named(address.after) ?? props.file] : inOrder(props.file, likest(props.file, others));
  const isSame = before.file === after.file;
  const isChosen = !isSame || address.before_at !== '' || address.after_at !== '';
  // Default for one trace: the two ends of the brushed range, or from the start to the peak.
  const [beforeAt, afterAt] = isChosen ? [address.before_at, address.after_at] : address.range.length === 2 ? [address.range[0] ?? '', address.range[1] ?? ''] : ['0', 'peak'];
  const withMoment = (moment: string): Filter => {
    const filter = { ...props.filter };
    if (moment !== '') {
      delete filter.range;
      filter.at = moment;
    }
    return filter;
  };
  const sides: Sides = {
    before: { file: before.file, filter: withMoment(beforeAt) }, after: { file: after.file, filter: withMoment(afterAt) },
  };
  const by = address.group || (isSame ? 'stacks' : 'functions');
  const more = address.more.flatMap((number) => named(Number(number)) ?? []).map((file) => ({ file, filter: withMoment(beforeAt) }));
  return (
    <section class="compare">
      <div class="view-tools">
        <label>Before <FileChoice label="File before" files={others} value={before.file} onChange={(file) => go({ before: file, after: after.file })} /></label>
        <Moment label="at" value={beforeAt} onChange={(before_at) => go({ before: before.file, after: after.file, before_at, after_at: afterAt })} />
        <label>After <FileChoice label="File after" files={others} value={after.file} onChange={(file) => go({ before: before.file, after: file })} /></label>
        <Moment label="at" value={afterAt} onChange={(after_at) => go({ before: before.file, after: after.file, before_at: beforeAt, after_at })} />
        <button type="button" class="button" title="Exchange before and after" onClick={() => go({ before: after.file, after: before.file, before_at: afterAt, after_at: beforeAt })}>⇄ Turn</button>
        <select aria-label="Compared by" value={by} onChange={(event) => go({ group: event.currentTarget.value, match: '', hidden: [] })}>
          <option value="functions">Functions</option><option value="stacks">Stacks</option><option value="frames">Frames</option><option value="images">Images</option>
        </select>
        <div class="switch" role="group" aria-label="Shown as">
          <button type="button" aria-pressed={address.picture !== 'flame'} onClick={() => go({ picture: 'table' })}>Table</button>
          <button type="button" aria-pressed={address.picture === 'flame'} onClick={() => go({ picture: 'flame' })}>Flame graph</button>
        </div>
      </div>
      {isChosen && address.range.length === 2 && (
        <div class="view-tools">
          <button type="button" class="button" onClick={() => go({ before: props.file.file, after: props.file.file, before_at: address.range[0] ?? '', after_at: address.range[1] ?? '' })}>Compare what was live at the two ends of the range</button>
        </div>
      )}
      {!isChosen && (
        <Message kind="note">
          {address.range.length === 2 ? 'From the beginning of the brushed range to its end.' : 'From the start to the peak.'} Other moments stand above; <button type="button" class="link" onClick={() => go({ before: before.file, after: after.file, before_at: 'peak', after_at: '' })}>from the peak to the end</button>; or open a second trace: drop it here, or <code>heapr view {before.name} OTHER.heapr</code>
        </Message>
      )}
      {address.picture === 'flame' ? <DiffFlame sides={sides} {...props} /> : by === 'functions' ? (
        <BuildsView builds={[{ file: before, filter: sides.before.filter }, { file: after, filter: sides.after.filter }, ...more]} others={others} generation={props.file.generation ?? 0} onCommand={props.onCommand} />
      ) : <DiffTable sides={sides} {...props} />}
    </section>
  );
}

/** Returns a pair with the recording that began first before the other. */
function inOrder(one: OpenFile, other: OpenFile): [OpenFile, OpenFile] {
  const start = (file: OpenFile) => file.trace?.start_unix_ns ?? 0;
  const isOlder = start(one) === start(other) ? one.file <= other.file : start(one) < start(other);
  return isOlder ? [one, other] : [other, one];
}

/**
 * Returns the default file to compare with: a trace of the same program, the one before it first. A
 * trace of another program is used only if it is the only one.
 */
function likest(file: OpenFile, files: OpenFile[]): OpenFile {
  const others = files.filter((other) => other.file !== file.file);
  const program = (of: OpenFile) => of.trace?.processes[0]?.name;
  const alike = others.filter((other) => program(other) === program(file));
  return alike.filter((other) => other.file < file.file).at(-1) ?? alike[0] ?? (others.length === 1 ? others[0] : undefined) ?? file;
}

function FileChoice({ label, files, value, onChange }: { label: string; files: OpenFile[]; value: number; onChange: (file: number) => void }) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(Number(event.currentTarget.value))}>
      {files.map((file) => <option key={file.file} value={file.file}>{file.name}</option>)}
    </select>
  );
}

function Moment({ label, value, onChange }: { label: string; value: string; onChange: (text: string) => void }) {
  return <label>{label} <input type="text" class="short" placeholder="the end" aria-label={`Moment: ${label}`} value={value} onChange={(event) => onChange(event.currentTarget.value.trim())} /></label>;
}

function DiffTable({ file, files, sides, onCommand }: TraceViewProps & { sides: Sides }) {
  const [opened, setOpened] = useState<DiffGroup | null>(null);
  const address = useAddress();
  const sort = address.sort || 'so';
  const metric = metricOf(sort);
  const isBytes = metric.endsWith('_bytes');
  const by = address.group === 'frames' || address.group === 'images' ? address.group : 'stacks';
  const [sums, setSums] = useTold<{ before: Amounts; after: Amounts; half: number } | null>(null);
  const body = { ...sides, by, sort, match: address.match, same: address.same };
  const { tree, isLoading } = useTree<DiffGroup>(JSON.stringify(body), async (_, offset, limit, signal) => {
    try {
      const diff = await answer<DiffAnswer>('/api/diff', { ...body, offset, limit }, signal);
      setSums({ before: diff.before, after: diff.after, half: diff.delta_plus_minus ?? 0 });
      onCommand(diff.command, null);
      return { rows: diff.groups, count: diff.match_count };
    } catch (error) {
      if (!signal.aborted) onCommand(null, error instanceof Error ? error.message : String(error));
      throw error;
    }
  }, file.generation);
  useEffect(() => () => onCommand(null, null), []);
  const amount = isBytes ? formatBytes : formatCount;
  const signed = isBytes ? formatSignedBytes : formatSignedCount;
  const exact = isBytes ? exactBytes : formatCount;
  const isSampled = sums !== null && (isEstimate(sums.before) || isEstimate(sums.after));
  const side = (key: 'before' | 'after', title: string): Column<DiffGroup> => ({
    key, title, isNumber: true, width: isSampled ? 12 : 7, text: (group) => amountText(group[key], metric), exact: (group) => exactAmount(group[key], metric), raw: (group) => group[key][metric],
  });
  const changeText = (group: DiffGroup, text: (value: number) => string, halfText = amount) => within(group.after[metric] - group.before[metric], group.delta_plus_minus, text, halfText);
  const columns: Column<DiffGroup>[] = [
    { key: 'delta', title: 'Difference', isNumber: true, width: isSampled ? 13.5 : 7.5, text: (group) => changeText(group, signed), exact: (group) => changeText(group, exact, exact), raw: (group) => group.after[metric] - group.before[metric], cell: (group) => { const change = group.after[metric] - group.before[metric]; return <span class={change > 0 ? 'is-more' : change < 0 ? 'is-less' : ''}>{changeText(group, signed)}</span>; } },
    side('before', 'Before'), side('after', 'After'),
    { key: 'names', title: by === 'stacks' ? 'Stack' : by === 'frames' ? 'Frame' : 'Image', width: 0, text: (group) => group.names.join(' ← '), exact: (group) => group.names.join('\n'), cell: (group) => <NamedStack names={group.names} own={group.own} /> },
  ];
  const table = (
    <Table
      label="Comparison" columns={columns} tree={tree} rowKey={(group) => group.names.join('\n')} selected={opened?.names.join('\n') ?? ''} onSelect={setOpened} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)}
      isOld={isLoading} empty={emptyText(address.match, 'No difference.')}
      tools={(
        <>
          <select aria-label="Difference of" value={sort} onChange={(event) => go({ sort: event.currentTarget.value === 'so' ? '' : event.currentTarget.value })}>
            {SORTS.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
          </select>
          <Search value={address.match} onChange={(match) => go({ match }, true)} label="Search the comparison" />
          <SameSwitch title="Also those that differ only in another amount" />
          {sums && <span class="quiet">{amountText(sums.before, metric)} → {amountText(sums.after, metric)} ({within(sums.after[metric] - sums.before[metric], sums.half, signed, amount)})</span>}
        </>
      )}
    />
  );
  const open = (side: { file: number; filter: Filter }) => ({ file: files.find((candidate) => candidate.file === side.file) ?? file, filter: side.filter });
  return (
    <Split
      direction="side" label="Width of the details" share={0.36} first={table}
      second={opened && by !== 'images' ? <ComparedPane key={opened.names.join('\n')} group={opened} before={open(sides.before)} after={open(sides.after)} /> : null}
    />
  );
}

function DiffFlame({ file, sides, onCommand }: TraceViewProps & { sides: Sides }) {
  const address = useAddress();
  const value = FLAME_VALUES.some(([key]) => key === address.value) ? address.value : 'outstanding_bytes';
  const { layout, whole, question, isPart, error, isLoading } = useZoomable('/api/diff-flame', {
    ...sides, value, direction: address.direction === 'bottom-up' ? 'bottom-up' : 'top-down', collapse_recursion: address.recursion, focus: address.focus || null, least_share: 0.0005, nodes_max: 20000,
  }, address.root, file.generation);
  const match = useMemo(() => (layout ? matching(layout, address.search) : null), [layout, address.search]);
  useEffect(() => onCommand(whole?.answer.command ?? null, error?.message ?? null), [whole, error]);
  useEffect(() => () => onCommand(null, null), []);
  const amount = value.endsWith('_bytes') ? formatBytes : formatCount;
  const signed = value.endsWith('_bytes') ? formatSignedBytes : formatSignedCount;
  const changeOf = (node: number) => {
    const nodes = layout?.answer.nodes;
    const [was, is] = [nodes?.before?.[node] ?? 0, nodes?.after?.[node] ?? 0];
    return [`${within(was, nodes?.before_plus_minus?.[node], amount)} → ${within(is, nodes?.after_plus_minus?.[node], amount)}`, `${within(is - was, nodes?.delta_plus_minus?.[node], signed, amount)}${was > 0 ? ` (${formatPercent(is - was, was)})` : ''}`];
  };
  const selected = layout?.byId.get(address.select) ?? -1;
  return (
    <section class="flame">
      <div class="view-tools">
        <FlameSwitches value={value} />
        <Search value={address.search} onChange={(search) => go({ search }, true)} label="Search symbol or image" waitMs={60} />
        {match && layout && <MatchSteps layout={layout} match={match} total={layout.total} />}
        <span class="quiet"><i class="swatch is-more" /> grew <i class="swatch is-less" /> shrank; a box is as wide as the larger of its two amounts</span>
        {isLoading && <span class="quiet" role="status">loading…</span>}
      </div>
      <Trail steps={whole && address.root !== '' ? zoomTrail(whole, address.root) : []} />
      {error && <Message kind="error">{error.message}</Message>}
      {layout && (
        <FlameGraph
          layout={layout} question={question} isUpward={address.shape !== 'icicle'} isMatch={match?.isMatch ?? null} zoom={isPart ? '' : address.root} onZoom={(id) => go({ root: id === address.root ? '' : id })}
          selected={address.select} onSelect={(select) => go({ select }, true)} label="Difference flame graph"
          describe={(node) => changeOf(node)}
        />
      )}
      {layout && selected > 0 && (
        <div class="selection">
          <strong>{nodeName(layout, selected)}</strong>
          <span class="quiet">{linkedName(nodeImage(layout, selected))}</span>
          <span>{changeOf(selected).join(', ')}</span>
          <span class="grow" />
          <SelectionActions layout={layout} node={selected} />
        </div>
      )}
    </section>
  );
}
