/**
 * "Where it is": all memory at a moment as one bar, with a link for each piece. It follows the
 * pointer on the timeline.
 */
import type { Address } from '../address/address';
import { go } from '../address/use-address';
import type { Filter, OpenFile, Piece, WhereAnswer } from '../api/types';
import { isStatic } from '../api/client';
import { useAnswer } from '../api/use-answer';
import { placeColour, placeSeriesColour, restColour } from '../canvas/colours';
import { exactBytes, formatBytes, formatDuration, formatPercent, plural, timeArgument } from '../format';
import { isDrawnDark } from '../frame/theme';
import { useCursor } from '../timeline/cursor';
import { withHalf } from '../trace/estimate';
import { isLive, pieceLink, piecePlace } from './where-links';

/** Filters that apply to all memory; with any other one, the card is left out. */
const KNOWN = new Set(['pid', 'at', 'snapshot', 'lang_frames']);

/** Whether the card has an answer for a filter. */
export function isOfAllMemory(filter: Filter): boolean {
  return Object.keys(filter).every((name) => KNOWN.has(name));
}

/** Moment that is asked for: under the pointer, chosen, the end of what is recorded, or the peak. */
function moment(file: OpenFile, filter: Filter, cursorNs: number | null): Filter {
  const { pid, lang_frames, snapshot, at } = filter;
  const rest: Filter = { ...(pid ? { pid } : {}), ...(lang_frames ? { lang_frames } : {}) };
  if (cursorNs !== null && !isStatic()) return { ...rest, at: timeArgument(cursorNs) };
  if (snapshot) return { ...rest, snapshot };
  if (at) return at === 'peak' ? rest : { ...rest, at };
  const isRecording = file.session?.state === 'recording' || file.session?.state === 'full';
  return isRecording ? { ...rest, at: timeArgument(file.trace?.duration_ns ?? 0) } : rest;
}

export function WhereCard({ file, filter }: { file: OpenFile; filter: Filter }) {
  const cursorNs = useCursor();
  const asked = moment(file, filter, cursorNs);
  const { data, error, isLoading } = useAnswer<WhereAnswer>('/api/where', { file: file.file, filter: asked }, file.generation);
  if (error && !data) return <section class="card where is-waiting is-failed" role="status"><h2>Where it is</h2> <span class="quiet">{error.message}</span></section>;
  if (!data) return <section class="card where is-waiting" role="status" aria-busy={isLoading}>Adding up where the memory is…</section>;
  // The answer of the previous moment is shown until the next has come.
  const isPeak = asked.at === undefined && !asked.snapshot && !isLoading;
  const hasResident = (file.trace?.resident_samples ?? 0) > 0 || file.session != null;
  return (
    <section class={`card where${isLoading ? ' is-old' : ''}`} aria-label="Where it is">
      <header><h2>Where it is</h2><span class="quiet when">{headText(data, isPeak)}</span></header>
      <Bar data={data} open={(piece) => open(piece, asked, hasResident)} />
      <ol class="where-pieces">
        {data.pieces.map((piece, number) => <PieceRow key={`${number} ${piece.label}`} {...{ piece, number }} whole={data.whole_bytes} onOpen={linkOf(piece, asked, hasResident) ? () => open(piece, asked, hasResident) : null} />)}
      </ol>
      {data.not_told.map((text) => <p key={text} class="quiet not-told">not told: {text}</p>)}
    </section>
  );
}

/** Link of a piece, with the processes and the snapshot that it was told of. */
function linkOf(piece: Piece, asked: Filter, hasResident: boolean): Partial<Address> | null {
  const link = pieceLink(piece, asked.at ?? '', hasResident);
  if (!link || !isLive(piece)) return link;
  return { ...link, ...(asked.pid ? { pid: asked.pid } : {}), ...(asked.snapshot ? { at: '', snapshot: asked.snapshot } : {}) };
}

function open(piece: Piece, asked: Filter, hasResident: boolean): void {
  const link = linkOf(piece, asked, hasResident);
  if (link) go(link);
}

/** `12.5 MiB live at the peak (2.300 s), 18.9 MiB resident after 2.312 s`. */
function headText(data: WhereAnswer, isPeak: boolean): string {
  const live = `${withHalf(data, 'live_bytes', formatBytes, formatBytes)} live ${isPeak ? `at the peak (${formatDuration(data.time_ns)})` : `after ${formatDuration(data.time_ns)}`}`;
  if (data.rss_bytes === null || data.rss_time_ns === null) return `${live}; how much was resident is unknown`;
  return `${live}, ${formatBytes(data.rss_bytes)} resident after ${formatDuration(data.rss_time_ns)}`;
}

function Bar({ data, open }: { data: WhereAnswer; open: (piece: Piece) => void }) {
  const isDark = isDrawnDark();
  return (
    <div class="where-bar" aria-hidden="true">
      {data.pieces.map((piece, number) => {
        const share = data.whole_bytes > 0 ? piece.bytes / data.whole_bytes : 0;
        return (
          <button
            key={`${number} ${piece.label}`} type="button" tabIndex={-1} class={`is-${piece.kind}`} title={`${piece.label}: ${formatBytes(piece.bytes)}, ${formatPercent(piece.bytes, data.whole_bytes)}`}
            style={{ flexGrow: piece.bytes, background: areaColour(piece, number, isDark) }} onClick={() => open(piece)}
          >
            {share > 0.07 && <span>{piece.label}</span>}
          </button>
        );
      })}
    </div>
  );
}

function areaColour(piece: Piece, number: number, isDark: boolean): string {
  const place = piecePlace(piece, number);
  return place === null ? '' : placeColour(place, isDark);
}

function PieceRow({ piece, number, whole, onOpen }: { piece: Piece; number: number; whole: number; onOpen: (() => void) | null }) {
  const place = piecePlace(piece, number);
  const isDark = isDrawnDark();
  const blocks = piece.block_count === null ? '' : ` in ${plural(piece.block_count, 'block')} of ${plural(piece.stack_count, 'stack')}`;
  return (
    <li>
      <button type="button" disabled={!onOpen} title={`${piece.label}\n${withHalf(piece, 'bytes', exactBytes, exactBytes)}${blocks}${piece.note ? `\n${piece.note}` : ''}`} onClick={() => onOpen?.()}>
        <i class="swatch" style={{ background: place === null ? restColour(isDark) : placeSeriesColour(place, isDark) }} />
        <span class="amount">{withHalf(piece, 'bytes', formatBytes, formatBytes)}</span>
        <span class="percent">{formatPercent(piece.bytes, whole)}</span>
        <span class={`where-label${piece.is_own ? ' is-own' : ''}`}>{piece.label}</span>
      </button>
    </li>
  );
}

