/**
 * Address space over time: a strip of pages at each moment of the recording, played or scrubbed, and
 * the functions whose blocks keep free memory.
 */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import type { PageCells, PlaceAnswer } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { exactBytes, formatBytes, formatDuration, formatPercent, plural, timeArgument } from '../format';
import { Message } from '../frame/message';
import { useCursor } from '../timeline/cursor';
import type { TraceViewProps } from '../trace/view-props';
import { PageStrip } from './page-strip';
import { nearestMoment, pinSentence } from './place-moments';

/** Time that a moment is shown while they are played. */
const STEP_MS = 180;
const OTHERS = 'other functions';

export function PlaceView({ file, filter, onCommand }: TraceViewProps) {
  const address = useAddress();
  const cursorNs = useCursor();
  const [isPlaying, setPlaying] = useState(false);
  const { pid } = filter;
  const { data, error, isLoading } = useAnswer<PlaceAnswer>('/api/place', { file: file.file, filter: pid ? { pid } : {} }, file.generation);
  useEffect(() => onCommand(null, error?.message ?? null), [error]);
  useEffect(() => () => onCommand(null, null), []);
  const count = data?.moments.length ?? 0;
  const chosen = address.moment >= 0 && address.moment < count ? address.moment : count - 1;
  const shown = cursorNs === null || !data ? chosen : nearestMoment(data.moments, cursorNs);
  useEffect(() => {
    if (!isPlaying || isLoading) return;
    const timer = setTimeout(() => (chosen + 1 < count ? go({ moment: chosen + 1 }, true) : setPlaying(false)), STEP_MS);
    return () => clearTimeout(timer);
  }, [isPlaying, isLoading, chosen, count]);
  const cells = useMemo(() => (data ? cellsOf(data, shown) : null), [data, shown]);
  if (error) return <Message kind="error">{error.message}</Message>;
  if (!data || !cells) return <p class="empty" role="status">Loading…</p>;
  const moment = data.moments[shown];
  if (!moment) return <Message kind="note">No moment is known: the recording has neither events nor snapshots yet. <code>heapr run --snapshot-every 10 -- PROGRAM</code> takes snapshots.</Message>;
  const play = () => {
    if (!isPlaying && chosen + 1 >= count) go({ moment: 0 }, true);
    setPlaying(!isPlaying);
  };
  const [first, ...others] = moment.pins;
  return (
    <section class={`resident${isLoading ? ' is-old' : ''}`}>
      <div class="view-tools">
        <button type="button" class="button" aria-pressed={isPlaying} onClick={play}>{isPlaying ? 'Stop' : 'Play'}</button>
        <label>Moment <input type="range" min={0} max={count - 1} value={shown} aria-valuetext={formatDuration(moment.time_ns)} onInput={(event) => { setPlaying(false); go({ moment: Number(event.currentTarget.value) }, true); }} /></label>
        <span><strong>{formatDuration(moment.time_ns)}</strong>: <span title={exactBytes(moment.live_bytes)}>{formatBytes(moment.live_bytes)} live</span> in pages of <span title={exactBytes(moment.page_bytes)}>{formatBytes(moment.page_bytes)}</span>, <span title={exactBytes(moment.free_bytes)}>{formatBytes(moment.free_bytes)} of them free</span>{moment.rss_bytes === null ? '' : `, ${formatBytes(moment.rss_bytes)} resident`}</span>
        <button type="button" class="button" title="All other views then count what is live at this moment" onClick={() => go(moment.snapshot === null ? { at: timeArgument(moment.time_ns), range: [], snapshot: '', view: 'stacks' } : { snapshot: String(moment.snapshot), range: [], at: '', view: 'stacks' })}>Stacks of it</button>
        {data.process_count > 1 && <span class="quiet">of process {data.pid} alone (one of {data.process_count}: the filter chooses another)</span>}
      </div>
      <div class="resident-body" tabIndex={0} role="group" aria-label="Address space">
        {first && first.free_bytes > 0 && (
          <article class="card finding is-resident">
            <p class="sentence">{pinSentence(first, data.owners)}</p>
            {others.length > 0 && <ul class="evidence">{others.filter((pin) => pin.free_bytes > 0).map((pin) => <li key={pin.owner}>{pinSentence(pin, data.owners)}</li>)}</ul>}
            <p class="quiet">These are pages at least half free: {formatBytes(moment.half_free_bytes)} of them free, {formatPercent(moment.half_free_bytes, moment.page_bytes)} of all pages with blocks. A page goes back to the system only as a whole.</p>
          </article>
        )}
        <PageStrip pages={cells} labelOf={(key) => key} placeOf={(key) => cells.classes.indexOf(key)} word="live" />
        <section class="card">
          <p class="quiet">{plural(count, 'moment')} of {file.trace?.snapshots.length && moment.snapshot !== null ? 'its snapshots' : 'equal distance'}; the pointer on the timeline chooses one, too. Whether a page without blocks is resident is not in a recording: <code>heapr explain PID --deep</code> tells it of a running process.</p>
        </section>
      </div>
    </section>
  );
}

/** Returns the cells of a moment as those of resident pages. */
function cellsOf(data: PlaceAnswer, at: number): PageCells {
  const moment = data.moments[at];
  const classes = [...data.owners.slice(0, data.coloured), OTHERS];
  const live = moment?.cell_live_bytes ?? [];
  return {
    cell_bytes: data.cell_bytes, runs: data.runs, classes, resident_bytes: live,
    class: live.map((bytes, cell) => {
      const owner = moment?.owner[cell] ?? -1;
      return bytes === 0 ? null : owner >= 0 ? owner : classes.length - 1;
    }),
  };
}
