/** Bar of a session that records: its state, and requests to it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { request } from '../api/client';
import type { OpenFile, SessionHistory, SessionState } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { Curve } from '../canvas/curve';
import { formatBytes, formatCount, formatDuration, plural } from '../format';
import { amountText, exactAmount, withHalf } from '../trace/estimate';
import { isQuiet } from '../timeline/live-tail';
import { Message } from './message';

const SAYS: Record<SessionState, string> = {
  recording: 'recording', full: 'full: its file has the size that it may have', ended: 'ended', cancelled: 'cancelled: its file was removed, what was read is still shown',
  lost: 'the recorder is gone without an end: shown is what it had written',
};

/** Lag of the views behind the recorder that is said. */
const LATE_NS = 2e9;

/**
 * Returns the file as it is shown: its newest state, or the state at which the user has held the
 * page.
 */
export function useHeld(newest: OpenFile | undefined): { file: OpenFile | undefined; isHeld: boolean; setHeld: (isHeld: boolean) => void } {
  const [held, setHeld] = useState<OpenFile | null>(null);
  const isHeld = held !== null && held.file === newest?.file && newest.session != null;
  return { file: isHeld ? held : newest, isHeld, setHeld: (wanted) => setHeld(wanted && newest ? newest : null) };
}

/** Formats `1,234 blocks ± 99`. */
function blocksOf(row: object, name: string): string {
  return withHalf(row, name, (count) => plural(count, 'block'), formatCount);
}

interface SessionBarProps {
  file: OpenFile;
  isHeld: boolean;
  setHeld: (isHeld: boolean) => void;
  askAgain: () => void;
}

export function SessionBar({ file, isHeld, setHeld, askAgain }: SessionBarProps) {
  const session = file.session;
  const [said, setSaid] = useState('');
  const [isStopping, setStopping] = useState(false);
  const marker = useRef<HTMLInputElement>(null);
  const isRunning = session?.state === 'recording' || session?.state === 'full';
  // Requested as often as the file is read; the history is small.
  const history = useAnswer<SessionHistory>('/api/session/status', { file: file.file }, Math.floor((session?.status?.duration_ns ?? 0) / 1e9));
  useEffect(() => setStopping(false), [session?.state]);
  if (!session) return null;
  const ask = async (what: string, body: object, done: (answer: Record<string, unknown>) => string) => {
    setSaid('…');
    try {
      setSaid(done(await request<Record<string, unknown>>(`/api/session/${what}`, { file: file.file, ...body })));
      askAgain();
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
  };
  const mark = (event: Event) => {
    event.preventDefault();
    const text = marker.current?.value.trim() ?? '';
    if (text === '') return;
    void ask('mark', { text }, () => `marked: ${text}`);
    if (marker.current) marker.current.value = '';
  };
  const status = session.status;
  // A session waits for further processes; the program for which it was started may have ended.
  const hasEnded = isRunning && status != null && status.process_count > 0 && status.live_process_count === 0;
  const shownNs = isHeld ? (file.trace?.duration_ns ?? 0) : session.shown_until_ns;
  const isLate = isRunning && status != null && (isHeld || !isQuiet(file)) && status.duration_ns - shownNs > LATE_NS;
  return (
    <>
      <section class="session-bar" aria-label={`Session ${session.name}`}>
        <span title={`Shown up to ${formatDuration(shownNs)}`}><i class={`dot is-${session.state === 'recording' && !hasEnded ? 'recording' : 'ready'}`} aria-hidden="true" /> <strong>{session.name}</strong> {hasEnded ? 'all its processes have ended; Stop completes the file' : SAYS[session.state]}</span>
        {status && (
          <>
            <span title={`${exactAmount(status, 'live_bytes')}; most so far ${exactAmount(status, 'peak_bytes')}`}>{amountText(status, 'live_bytes')} live in {blocksOf(status, 'live_count')}</span>
            {history.data && history.data.history.live_bytes.length > 1 && <Curve values={history.data.history.live_bytes.slice(-120)} halves={history.data.history.live_bytes_plus_minus?.slice(-120)} />}
            <span class="quiet" title={`${formatBytes(status.file_bytes)} written`}>{formatDuration(status.duration_ns)}, {plural(status.event_count, 'event')}, {status.process_count === 1 ? '1 process' : `${formatCount(status.live_process_count)} of ${formatCount(status.process_count)} processes live`}</span>
          </>
        )}
        {isLate && <span class="quiet" title="The recorder tells its amounts at once; the views read them from the file">the views show the first {formatDuration(shownNs)}</span>}
        <span class="quiet said" role="status" title={said}>{said}</span>
        {isRunning && (
          <>
            <button type="button" class="button" aria-pressed={isHeld} title="What is shown stands still; the recording goes on (H)" id="hold" onClick={() => setHeld(!isHeld)}>{isHeld ? 'Follow again' : 'Hold'}</button>
            <form onSubmit={mark}><input ref={marker} type="text" class="short" aria-label="Text of a marker" placeholder="marker" /><button type="submit" class="button">Mark</button></form>
            <button type="button" class="button" title="Write the live blocks as a snapshot, as heapr snapshot take" onClick={() => void ask('snapshot', { name: '', pids: [] }, (taken) => `snapshot ${String(taken['number'])}: ${amountText(taken, 'block_bytes')} in ${blocksOf(taken, 'block_count')}`)}>Snapshot</button>
            {isStopping
              ? <button type="button" class="button is-peak" onClick={() => void ask('stop', {}, () => 'stopped')}>End the recording?</button>
              : <button type="button" class="button" title="End the recording; the file is shown then" onClick={() => setStopping(true)}>Stop</button>}
          </>
        )}
      </section>
      {session.trouble && <Message kind="warning">{session.trouble}</Message>}
      {status?.write_error && <Message kind="error">{status.write_error}</Message>}
      {(status?.remarks ?? []).slice(-3).map((remark) => <Message key={remark} kind="note">{remark}</Message>)}
      {status && status.events_lost > 0 && <Message kind="warning">{plural(status.events_lost, 'event')} lost so far: the amounts below are too small.</Message>}
      {status && status.mode !== 'trace' && isRunning && <Message kind="note">This session ({status.mode}) keeps no events in its file while it runs: snapshots are shown as they are taken, and the curve above.</Message>}
    </>
  );
}
