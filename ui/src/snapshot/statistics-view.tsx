/**
 * Bytes as a ring and a list: by kind as in DevTools' Statistics, or for a native heap by the
 * evidence for its blocks.
 */
import { useEffect } from 'preact/hooks';
import { useAnswer } from '../api/use-answer';
import { exactBytes, formatBytes, formatCount, formatPercent } from '../format';
import { Message } from '../frame/message';
import { isDrawnDark } from '../frame/theme';
import { seriesColours } from '../canvas/colours';
import type { SnapshotViewProps } from './view-props';

const NAMES: Record<string, string> = {
  code: 'Code', strings: 'Strings', js_arrays: 'JS arrays', typed_arrays: 'Typed arrays', system: 'System objects', other_js: 'Other JS objects', other_native: 'Other non-JS objects (such as HTML and CSS)',
  // Heaps of other languages than JavaScript have strings and others alone.
  other: 'Other objects',
};
/** Sums of other rows, which are not parts of the ring. */
const SUMS: Record<string, string> = { v8_heap: 'V8 heap', native: 'Native memory', total: 'Total' };

interface StatisticsRow {
  kind: string;
  bytes: number;
  /** Native heaps: kind of evidence for blocks, and their number. */
  heading?: string;
  count?: number;
}

function nameOf(row: StatisticsRow): string {
  return row.heading ?? NAMES[row.kind] ?? row.kind;
}

export function StatisticsView({ file, onCommand }: SnapshotViewProps) {
  const { data, error } = useAnswer<{ rows: StatisticsRow[]; command?: string | null }>('/api/snapshot/statistics', { file: file.file });
  useEffect(() => onCommand(data?.command ?? null), [data]);
  useEffect(() => () => onCommand(null), []);
  if (error) return <Message kind="error">{error.message}</Message>;
  if (!data) return <p class="empty" role="status">Loading…</p>;
  const parts = data.rows.filter((row) => !(row.kind in SUMS)).sort((a, b) => b.bytes - a.bytes);
  const sums = data.rows.filter((row) => row.kind in SUMS);
  const whole = sums.find((row) => row.kind === 'total')?.bytes ?? parts.reduce((sum, row) => sum + row.bytes, 0);
  const isNative = data.rows.some((row) => row.heading !== undefined);
  const colours = seriesColours(parts.map((row) => row.kind), isDrawnDark());
  let turned = 0;
  const ring = 2 * Math.PI * 40;
  return (
    <div class="statistics">
      <svg class="ring" viewBox="0 0 100 100" role="img" aria-label={parts.map((row) => `${nameOf(row)} ${formatPercent(row.bytes, whole)}`).join(', ')}>
        {parts.map((row, at) => {
          const length = whole === 0 ? 0 : (row.bytes / whole) * ring;
          const offset = -turned;
          turned += length;
          // Browsers draw a dash thinner than a pixel as a wedge.
          if (length < ring / 1000) return null;
          return <circle key={row.kind} cx="50" cy="50" r="40" fill="none" stroke-width="18" stroke={colours[at]} stroke-dasharray={`${length} ${ring - length}`} stroke-dashoffset={offset} transform="rotate(-90 50 50)"><title>{`${nameOf(row)}: ${exactBytes(row.bytes)}`}</title></circle>;
        })}
        <text x="50" y="49" text-anchor="middle" class="ring-total">{formatBytes(whole)}</text>
        <text x="50" y="57" text-anchor="middle" class="ring-word">total</text>
      </svg>
      <table class="plain">
        <thead><tr><th>{isNative ? 'What tells it' : 'Kind'}</th>{isNative ? <th>Blocks</th> : <td />}<th>Size</th><th>Share</th></tr></thead>
        <tbody>
          {parts.map((row, at) => (
            <tr key={row.kind}><td><i class="swatch" style={{ background: colours[at] ?? '' }} />{nameOf(row)}</td><td>{row.count === undefined ? '' : formatCount(row.count)}</td><td title={exactBytes(row.bytes)}>{formatBytes(row.bytes)}</td><td>{formatPercent(row.bytes, whole)}</td></tr>
          ))}
          {sums.map((row) => <tr key={row.kind} class="is-sum"><td>{SUMS[row.kind]}</td><td>{row.count === undefined ? '' : formatCount(row.count)}</td><td title={exactBytes(row.bytes)}>{formatBytes(row.bytes)}</td><td>{formatPercent(row.bytes, whole)}</td></tr>)}
        </tbody>
      </table>
    </div>
  );
}
