/** Page of a trace: the timeline above, filters, and one view of the selected allocations. */
import { useMemo, useState } from 'preact/hooks';
import { filterOf } from '../address/address';
import { useAddress } from '../address/use-address';
import type { OpenFile } from '../api/types';
import { CommandLine, FilterBar } from '../filter/filter-bar';
import { LanguageSwitch } from '../filter/language-switch';
import { giveColours } from '../canvas/colours';
import { fileName } from '../format';
import { Split } from '../frame/split';
import { type TabGroup, TabGroups } from '../frame/tab-groups';
import type { View } from '../frame/tabs';
import { Timeline } from '../timeline/timeline';
import { CompareView } from './compare-view';
import { FlameView } from './flame-view';
import { HistogramView } from './histogram-view';
import { FunctionView } from './function-view';
import { giveLinks } from '../image-links';
import { LeakView } from './leak-view';
import { OverviewView } from './overview-view';
import { ReportView } from './report-view';
import { PlaceView } from '../resident/place-view';
import { ResidentView } from '../resident/resident-view';
import { SnapshotsView } from '../native/snapshots-view';
import { TreeView } from './tree-view';
import type { TraceViewProps } from './view-props';
import { TypesView } from './types-view';

/** Views of a trace, by the question that they answer. */
const GROUPS: TabGroup[] = [
  { key: 'answer', title: 'Answer', help: 'Where the memory is, and what stands out', views: [
    { key: 'overview', title: 'Overview', help: 'Where the memory is, what stands out, totals' },
    { key: 'leaks', title: 'Leaks', help: 'What was never freed, with its age' },
  ] },
  { key: 'where', title: 'Where', help: 'Who holds the memory', views: [
    { key: 'flame', title: 'Flame graph', help: 'Who holds the memory' },
    { key: 'stacks', title: 'Stacks', help: 'Whole stacks, ranked' },
    { key: 'functions', title: 'Functions', help: 'All functions with what they call, their callers and callees' },
    { key: 'tree', title: 'Call tree', help: 'From the start down, or from who allocates up, as a table' },
    { key: 'frames', title: 'Frames', help: 'What allocates by itself' },
    { key: 'images', title: 'Images', help: 'Programs and libraries' },
    { key: 'threads', title: 'Threads', help: 'Allocating threads' },
  ] },
  { key: 'time', title: 'Time', help: 'What changes over time', views: [
    { key: 'resident', title: 'Resident', help: 'What all resident memory is: areas, lines that add up' },
    { key: 'place', title: 'Address space', help: 'Pages over time: how full they are, and whose blocks keep free memory' },
    { key: 'snapshots', title: 'Snapshots', help: 'Live blocks at a moment: what they hold, compared, suspects' },
    { key: 'histograms', title: 'Histograms', help: 'Sizes and lifetimes' },
    { key: 'types', title: 'Types', help: 'Allocated and freed inside or outside of the range' },
  ] },
  { key: 'compare', title: 'Compare', help: 'With other files, or two moments', views: [
    { key: 'compare', title: 'Compare', help: 'With another file, or two moments' },
  ] },
];
const VIEWS: View[] = GROUPS.flatMap((group) => group.views);

export function TracePage({ file, files }: { file: OpenFile; files: OpenFile[] }) {
  const address = useAddress();
  useMemo(() => giveColours([...(file.trace?.languages ?? []).map(([short = '']) => short), ...(file.trace?.modules ?? []).slice(0, 64).map((module) => fileName(module.path))]), [file.file]);
  useMemo(() => giveLinks(files), [files]);
  const [told, setTold] = useState<{ command: string | null; error: string | null }>({ command: null, error: null });
  const hasSnapshots = (file.trace?.snapshots?.length ?? 0) > 0 || file.session != null;
  const isThere: Record<string, boolean> = {
    place: hasSnapshots || (file.trace?.event_count ?? 0) > 0, snapshots: hasSnapshots, resident: (file.trace?.resident_samples ?? 0) > 0 || file.session != null };
  const groups = GROUPS.map((group) => ({ ...group, views: group.views.filter(({ key }) => isThere[key] ?? true) }));
  const view = VIEWS.find((candidate) => candidate.key === address.view)?.key ?? 'overview';
  const onCommand = (command: string | null, error: string | null) => {
    setTold((old) => (old.command === command && old.error === error ? old : { command, error }));
  };
  const props: TraceViewProps = { file, files, filter: filterOf(address), onCommand };
  return (
    <Split
      direction="below" label="Height of the timeline" share={0.76}
      first={<Timeline file={file} files={files} />}
      second={(
        <div class="trace">
          <div class="filter-row">
            <FilterBar file={file} error={told.error} />
            <LanguageSwitch file={file} />
            <CommandLine command={told.command} {...(view === 'leaks' ? { note: 'Gives the same stacks and bytes; shares, ages and curves are the page’s' } : {})} />
          </div>
          <TabGroups groups={groups} current={view} />
          <div class="view" role="tabpanel" tabIndex={-1} aria-label={VIEWS.find((candidate) => candidate.key === view)?.title}>
            {view === 'overview' && <OverviewView {...props} />}
            {view === 'flame' && <FlameView {...props} />}
            {view === 'stacks' && <ReportView key="stacks" by="stacks" {...props} />}
            {view === 'functions' && <FunctionView {...props} />}
            {view === 'tree' && <TreeView {...props} />}
            {view === 'frames' && <ReportView key="frames" by="frames" {...props} />}
            {view === 'images' && <ReportView key="images" by="images" {...props} />}
            {view === 'threads' && <ReportView key="threads" by="by-thread" {...props} />}
            {view === 'leaks' && <LeakView {...props} />}
            {view === 'histograms' && <HistogramView {...props} />}
            {view === 'types' && <TypesView {...props} />}
            {view === 'snapshots' && <SnapshotsView {...props} />}
            {view === 'place' && <PlaceView {...props} />}
            {view === 'resident' && <ResidentView {...props} />}
            {view === 'compare' && <CompareView {...props} />}
          </div>
        </div>
      )}
    />
  );
}
