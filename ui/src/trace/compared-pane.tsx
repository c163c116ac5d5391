/**
 * Pane of a comparison's row: its stack with source, and its live bytes over time, in the file
 * after or, if it is absent there, in the one before.
 */
import type { DiffGroup, Filter, Group, OpenFile, ReportAnswer, TimelineAnswer } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { go } from '../address/use-address';
import { Curve } from '../canvas/curve';
import { fileName, formatBytes, formatSignedBytes } from '../format';
import { Message } from '../frame/message';
import { halfOfBoth, plusMinus, within } from './estimate';
import { splitName } from './stack-name';
import { StackPane } from './stack-pane';

interface ComparedPaneProps {
  group: DiffGroup;
  before: { file: OpenFile; filter: Filter };
  after: { file: OpenFile; filter: Filter };
}

/**
 * Returns the names by which frames are compared; frames without a name have that of their image.
 */
function namesOf(group: Group): string[] {
  return group.frames.map(({ module, symbol }) => `${module === null ? '?' : fileName(module)}!${symbol ?? '?'}`);
}

export function ComparedPane({ group, before, after }: ComparedPaneProps) {
  const isThere = group.after.total_count > 0 || group.after.outstanding_count > 0;
  const side = isThere ? after : before;
  // In another version the program and its libraries have other names, so that the function is
  // requested.
  const named = group.names.map(splitName).find(({ symbol }) => symbol !== '?' && symbol !== '');
  const filter: Filter = named ? { ...side.filter, require_frames: [...(side.filter.require_frames ?? []), named.symbol] } : side.filter;
  const { data, error } = useAnswer<ReportAnswer>('/api/report', { file: side.file.file, filter, by: 'stacks', sort: 'so', descending: true, offset: 0, limit: 500, match: '', frames_max: 128 });
  const timeFilter = { ...filter };
  delete timeFilter.at;
  delete timeFilter.range;
  delete timeFilter.type;
  delete timeFilter.snapshot;
  const curve = useAnswer<TimelineAnswer>('/api/timeline', { file: side.file.file, filter: timeFilter, from_ns: 0, to_ns: Math.max(1, side.file.trace?.duration_ns ?? 1), bins: 60, by: 'none', series_max: 0, value: 'bytes' });
  if (error) return <Message kind="error">{error.message}</Message>;
  if (!data) return <p class="empty" role="status">Loading…</p>;
  const symbols = (names: string[]) => names.map((name) => splitName(name).symbol || '?').join('\n');
  const half = halfOfBoth(plusMinus(group.before, 'outstanding_bytes'), plusMinus(group.after, 'outstanding_bytes'));
  const wanted = symbols(group.names);
  const found = data.groups.find((candidate) => symbols(namesOf(candidate)) === wanted) ?? data.groups[0];
  return (
    <div class="stack-pane">
      <p class="pane-head">
        <span>{within(group.after.outstanding_bytes - group.before.outstanding_bytes, half, formatSignedBytes, formatBytes)} outstanding, in <strong>{side.file.name}</strong></span>
        {named && <button type="button" class="button" onClick={() => go({ file: side.file.file, view: 'stacks', require_frames: [named.symbol], select: found?.id ?? '', sort: '' })}>Stacks</button>}
      </p>
      {curve.data && curve.data.live_bytes.length > 1 && <div class="compared-curve" title={`Live bytes of all stacks with ${named?.symbol ?? 'it'} over the time`}><Curve values={curve.data.live_bytes} halves={curve.data.live_bytes_plus_minus} /></div>}
      {found?.id ? <StackPane file={side.file} filter={filter} id={found.id} /> : <p class="empty">No stack of it is left by the filters.</p>}
    </div>
  );
}
