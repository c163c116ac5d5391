/**
 * Page of a heap snapshot: one of DevTools' views above, the chosen object with its retainers
 * below.
 */
import { useState } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import type { OpenFile } from '../api/types';
import { CommandLine } from '../filter/filter-bar';
import { formatBytes, formatCount, formatDuration, plural } from '../format';
import { Split } from '../frame/split';
import { showFile } from '../frame/show-file';
import { Tabs, type View } from '../frame/tabs';
import { Timeline } from '../timeline/timeline';
import { ComparisonView } from './comparison-view';
import { ListsView } from './lists-view';
import { ObjectPane } from './object-pane';
import { SearchView } from './search-view';
import { StatisticsView } from './statistics-view';
import { SummaryView } from './summary-view';
import { SuspectsView } from './suspects-view';
import { TreeView } from './tree-view';
import { TreemapView } from './treemap-view';
import type { SnapshotViewProps } from './view-props';

const VIEWS: View[] = [
  { key: 'summary', title: 'Summary', help: 'Objects by constructor' },
  { key: 'comparison', title: 'Comparison', help: 'What is new and what is gone since another snapshot' },
  { key: 'containment', title: 'Containment', help: 'From the roots down' },
  { key: 'dominators', title: 'Dominators', help: 'What each object alone keeps alive' },
  { key: 'statistics', title: 'Statistics', help: 'Bytes by kind' },
  { key: 'suspects', title: 'Suspects', help: 'Who grew: the likeliest leak first' },
  { key: 'treemap', title: 'Treemap', help: 'Retained size as areas' },
  { key: 'lists', title: 'Lists', help: 'Strings, collections, shapes and others that cost much' },
  { key: 'search', title: 'Search', help: 'By class, id, string' },
];
/** Views that a snapshot of a native process has. */
const NATIVE_VIEWS = ['summary', 'comparison', 'statistics', 'suspects', 'search'];

export function SnapshotPage({ file, files }: { file: OpenFile; files: OpenFile[] }) {
  const address = useAddress();
  const [command, setCommand] = useState<string | null>(null);
  const views = file.kind === 'native' ? VIEWS.filter((view) => NATIVE_VIEWS.includes(view.key)) : VIEWS;
  // For several snapshots of one program the question is what grew.
  const isSeries = file.kind !== 'native' && files.filter((other) => other.snapshot && other.kind === file.kind).length > 1;
  const view = views.find((candidate) => candidate.key === address.view)?.key ?? (isSeries ? 'suspects' : 'summary');
  const totalBytes = file.snapshot?.total_bytes ?? 0;
  const props: SnapshotViewProps = { file, files, totalBytes, onCommand: setCommand };
  const main = (
    <div class="view" role="tabpanel" tabIndex={-1} aria-label={views.find((candidate) => candidate.key === view)?.title}>
      {view === 'summary' && <SummaryView {...props} />}
      {view === 'comparison' && <ComparisonView {...props} />}
      {view === 'containment' && <TreeView key="containment" kind="containment" {...props} />}
      {view === 'dominators' && <TreeView key="dominators" kind="dominators" {...props} />}
      {view === 'statistics' && <StatisticsView {...props} />}
      {view === 'suspects' && <SuspectsView {...props} />}
      {view === 'treemap' && <TreemapView {...props} />}
      {view === 'lists' && <ListsView {...props} />}
      {view === 'search' && <SearchView {...props} />}
    </div>
  );
  const recording = files.find((other) => other.trace && other.file === file.taken?.file);
  const below = (
    <div class="snapshot">
      <div class="filter-row">
        <span class="grow">
          <strong title={`${formatCount(totalBytes)} bytes`}>{formatBytes(totalBytes)}</strong> in {plural(file.snapshot?.node_count ?? 0, 'object')}{file.snapshot?.runtime ? ` of ${file.snapshot.runtime}` : ''}
          {file.snapshot?.exposes_internals ? ', internals shown' : ''}
          {recording && file.taken && (
            <span class="quiet" title="By the name of the file and the time at which it was written">
              {' '}of process {file.taken.pid}, taken {file.taken.time_ns < (recording.trace?.duration_ns ?? 0) ? `after ${formatDuration(file.taken.time_ns)}` : 'at or after the end'} of <button type="button" class="link" onClick={() => showThen(recording, file)}>{recording.name}: what was live then</button>
            </span>
          )}
        </span>
        <CommandLine command={command} />
      </div>
      <Tabs views={views} current={view} />
      <Split
        direction="below" label="Height of the object" share={0.42} first={main}
        second={address.object >= 0 && file.kind !== 'native' ? <ObjectPane {...props} id={address.object} /> : null}
      />
    </div>
  );
  if (!recording) return below;
  return <Split direction="below" label="Height of the timeline" share={0.8} first={<Timeline file={recording} files={files} shown={file} />} second={below} />;
}

/** Shows what the recording of a heap's process had live when the heap was taken. */
function showThen(recording: OpenFile, heap: OpenFile): void {
  showFile(recording, heap);
  go({ at: `${heap.taken?.time_ns ?? 0}ns`, range: [] }, true);
}
