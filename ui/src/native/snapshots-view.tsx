/** View of a trace's native snapshots: choice of the snapshot and of its view. */
import { go, useAddress } from '../address/use-address';
import { formatBytes, formatDuration } from '../format';
import { Message } from '../frame/message';
import type { TraceViewProps } from '../trace/view-props';
import { NativeComparisonView } from './native-comparison';
import { snapshotTitle, snapshotsOf } from './native-columns';
import { NativeHoldersView, NativeLeaksView, NativeObjectsView } from './native-graph';
import { NativePagesView } from './native-pages';
import { NativeStatisticsView } from './native-statistics';
import { NativeSummaryView } from './native-summary';
import { NativeSuspectsView } from './native-suspects';
import { NativeTreemapView } from './native-treemap';
import type { NativeViewProps } from './view-props';

const PARTS: [string, string, string][] = [
  ['summary', 'Summary', 'What it holds'], ['comparison', 'Comparison', 'Against another snapshot'], ['suspects', 'Suspects', 'Who grows over all snapshots'],
  ['holders', 'Holders', 'Who holds the blocks: variables, stack frames, mappings'], ['leaks', 'Leaked', 'Blocks that nothing leads to'], ['dominators', 'Dominators', 'What each block alone keeps'], ['objects', 'Objects', 'Blocks by type, with their retainers'],
  ['treemap', 'Treemap', 'As areas'], ['statistics', 'Statistics', 'Heaps, processes, threads, sizes, ages'], ['pages', 'Pages', 'The address space: how full pages are, and whose blocks keep them'],
];

/** Parts that need a snapshot with references. */
const GRAPH_PARTS = new Set(['holders', 'leaks', 'dominators', 'objects']);

export function SnapshotsView(props: TraceViewProps) {
  const address = useAddress();
  const snapshots = snapshotsOf(props.file);
  const shown = snapshots.find((snapshot) => snapshot.number === address.number) ?? snapshots.at(-1);
  if (!shown) {
    if (props.file.session) return <Message kind="note">No snapshot was taken yet: <em>Snapshot</em>, above, takes one; it is shown a moment later.</Message>;
    return <Message kind="note">The trace holds no snapshots. <code>heapr run --snapshot-every 10 -- PROGRAM</code> takes them, and so does <code>heapr snapshot take PID</code>.</Message>;
  }
  const hasGraph = snapshots.some((snapshot) => snapshot.has_graph);
  const part = PARTS.find(([key]) => key === address.part)?.[0] ?? 'summary';
  const native: NativeViewProps = { ...props, shown };
  return (
    <section class="compare">
      <div class="view-tools">
        <div class="switch" role="group" aria-label="Snapshot shown as">
          {PARTS.filter(([key]) => hasGraph || !GRAPH_PARTS.has(key)).map(([key, title, help]) => <button key={key} type="button" title={help} aria-pressed={key === part} onClick={() => go({ part: key, sort: '', ascending: false, match: '', select: '', object: -1, hidden: [] })}>{title}</button>)}
        </div>
        {part !== 'suspects' && (
          <label>
            Snapshot{' '}
            <select aria-label="Snapshot" value={shown.number} onChange={(event) => go({ number: Number(event.currentTarget.value), select: '' })}>
              {snapshots.map((snapshot) => <option key={snapshot.number} value={snapshot.number}>{snapshotTitle(snapshot)}</option>)}
            </select>
          </label>
        )}
        <button type="button" class="button" title={`--snapshot ${shown.number}: flame graph, stacks, frames, images of what it holds`} onClick={() => go({ snapshot: String(shown.number), range: [], at: '', type: '', temporary: false, view: 'flame', value: 'outstanding_bytes', root: '' })}>Flame graph</button>
        <span class="quiet">{shown.processes.map((process) => `${process.name}${process.rss_bytes ? `: ${formatBytes(process.rss_bytes)} resident` : ''}`).join(', ')}</span>
      </div>
      {shown.notes.map((note) => <Message key={note} kind="warning">Snapshot {shown.number} at {formatDuration(shown.time_ns)}: {note}</Message>)}
      {part === 'summary' && <NativeSummaryView {...native} />}
      {part === 'comparison' && <NativeComparisonView {...native} />}
      {part === 'suspects' && <NativeSuspectsView {...native} />}
      {part === 'holders' && <NativeHoldersView {...native} />}
      {part === 'leaks' && <NativeLeaksView {...native} />}
      {(part === 'dominators' || part === 'objects') && <NativeObjectsView key={part} kind={part} {...native} />}
      {part === 'treemap' && <NativeTreemapView {...native} />}
      {part === 'statistics' && <NativeStatisticsView {...native} />}
      {part === 'pages' && <NativePagesView {...native} />}
    </section>
  );
}
