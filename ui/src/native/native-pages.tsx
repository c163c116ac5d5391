/**
 * Address space at a snapshot: how full of live blocks pages are, and whose blocks keep pages that
 * are partly free. The snapshots are played one after the other.
 */
import { useEffect, useState } from 'preact/hooks';
import { go } from '../address/use-address';
import type { PageCells, PagesAnswer } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { placeSeriesColour } from '../canvas/colours';
import { exactBytes, formatBytes, formatCount, formatDuration, formatPercent, plural } from '../format';
import { Message } from '../frame/message';
import { isDrawnDark } from '../frame/theme';
import { PageStrip } from '../resident/page-strip';
import { snapshotsOf } from './native-columns';
import type { NativeViewProps } from './view-props';

/** Time that a snapshot is shown while they are played. */
const STEP_MS = 900;
const OTHERS = 'others';

export function NativePagesView({ file, filter, shown, onCommand }: NativeViewProps) {
  const [isPlaying, setPlaying] = useState(false);
  const snapshots = snapshotsOf(file);
  const { pid } = filter;
  const { data, error, isLoading } = useAnswer<PagesAnswer>('/api/native/pages', { file: file.file, number: shown.number, filter: pid ? { pid } : {} }, file.generation);
  useEffect(() => onCommand(data?.command ?? null, error?.message ?? null), [data, error]);
  useEffect(() => () => onCommand(null, null), []);
  const at = snapshots.findIndex((snapshot) => snapshot.number === shown.number);
  const step = (place: number) => go({ number: snapshots[place]?.number ?? shown.number }, true);
  useEffect(() => {
    if (!isPlaying || isLoading) return;
    const timer = setTimeout(() => (at + 1 < snapshots.length ? step(at + 1) : setPlaying(false)), STEP_MS);
    return () => clearTimeout(timer);
  }, [isPlaying, isLoading, at]);
  const play = () => {
    if (!isPlaying && at + 1 >= snapshots.length) step(0);
    setPlaying(!isPlaying);
  };
  if (error) return <Message kind="error">{error.message}</Message>;
  if (!data) return <p class="empty" role="status">Loading…</p>;
  const isDark = isDrawnDark();
  return (
    <section class={`resident${isLoading ? ' is-old' : ''}`}>
      <div class="view-tools">
        {snapshots.length > 1 && (
          <>
            <button type="button" class="button" aria-pressed={isPlaying} onClick={play}>{isPlaying ? '❚❚ Pause' : '▶ Play'}</button>
            <label>Time <input type="range" min={0} max={snapshots.length - 1} value={Math.max(0, at)} aria-valuetext={formatDuration(shown.time_ns)} onInput={(event) => step(Number(event.currentTarget.value))} /></label>
          </>
        )}
        <span>after <strong>{formatDuration(data.time_ns)}</strong>: <span title={exactBytes(data.live_bytes)}>{formatBytes(data.live_bytes)} live</span> in {plural(data.page_count, 'page')}, <span title={exactBytes(data.free_bytes)}>{formatBytes(data.free_bytes)} of them in no live block</span>{data.process_count > 1 && data.pid !== null ? ` (process ${data.pid}, which holds most of ${formatCount(data.process_count)} processes)` : ''}</span>
      </div>
      <div class="resident-body" tabIndex={0} role="group" aria-label="Pages of the snapshot">
        {data.page_count === 0 ? <p class="empty">The snapshot has no blocks.</p> : <PageStrip pages={cellsOf(data)} labelOf={(key) => (key === OTHERS ? 'other functions' : key)} placeOf={(key) => placeOf(data, key)} word="live" />}
        <section class="card resident-lines">
          <table class="plain">
            <thead><tr><th>Function</th><th>Keeps free</th><th>Share</th><th>Blocks in half-empty pages</th><th>Live</th></tr></thead>
            <tbody>
              {data.owners.map((owner, place) => (
                <tr key={owner.label}>
                  <td><i class="swatch" style={{ background: placeSeriesColour(place, isDark) }} /><button type="button" class="link" onClick={() => go({ snapshot: String(shown.number), view: 'stacks', select: owner.stack, sort: '' })}>{owner.label}</button></td>
                  <td title={exactBytes(owner.free_bytes)}>{formatBytes(owner.free_bytes)}</td><td>{formatPercent(owner.free_bytes, data.free_bytes)}</td>
                  <td>{formatCount(owner.block_count)} of {formatBytes(owner.block_bytes)}</td><td title={exactBytes(owner.live_bytes)}>{formatBytes(owner.live_bytes)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <p class="quiet">The free bytes of a page are shared among the live blocks in it: freed memory, headers, or memory that is not malloc's. Whether a page is resident is not in a snapshot. <code>heapr explain PID --deep</code> tells it.</p>
        </section>
      </div>
    </section>
  );
}

/** Returns the cells as those of resident pages. */
function cellsOf(data: PagesAnswer): PageCells {
  const classes = [...data.owners.map((owner) => owner.label), OTHERS];
  return {
    cell_bytes: data.cell_bytes, runs: data.runs, classes, resident_bytes: data.cell_live_bytes,
    class: data.cell_live_bytes.map((bytes, cell) => (bytes === 0 ? null : (data.owner[cell] ?? classes.length - 1))),
  };
}

/** Returns the place of a function in the list of colours. */
function placeOf(data: PagesAnswer, key: string): number {
  const place = data.owners.findIndex((owner) => owner.label === key);
  return place >= 0 ? place : data.owners.length;
}
