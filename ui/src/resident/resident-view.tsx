/**
 * Breakdown of all resident memory of a process at a moment: as areas, as a strip of pages, and as
 * lines that add up.
 */
import { useEffect, useMemo } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import type { OpenFile, ResidentAnswer } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { placeColour, placeSeriesColour } from '../canvas/colours';
import { exactBytes, formatBytes, formatDuration, formatPercent } from '../format';
import { Message } from '../frame/message';
import { isDrawnDark } from '../frame/theme';
import { withHalf } from '../trace/estimate';
import { TreemapCanvas } from '../treemap/treemap-canvas';
import { PageStrip } from './page-strip';
import { ResidentBands } from './resident-bands';
import { residentTree } from './resident-tree';

interface ResidentViewProps {
  file: OpenFile;
  onCommand: (command: string | null, error: string | null) => void;
}

export function ResidentView({ file, onCommand }: ResidentViewProps) {
  const address = useAddress();
  const { data, error, isLoading } = useAnswer<ResidentAnswer>('/api/resident', { file: file.file, moment: address.moment < 0 ? null : address.moment }, file.generation);
  useEffect(() => onCommand(data?.command ?? null, error?.message ?? null), [data, error]);
  useEffect(() => () => onCommand(null, null), []);
  const tree = useMemo(() => residentTree(data?.lines ?? [], data?.of || 'resident'), [data]);
  if (error) return <Message kind="error">{error.message}</Message>;
  if (!data) return <p class="empty" role="status">Loading…</p>;
  if (data.rss_bytes.length === 0) return <Message kind="note">Nothing is known of resident memory here: <code>heapr explain PID</code> looks at a process.</Message>;
  const { shown } = data;
  const bandOf = (key: string) => data.bands.find((band) => band.class === key);
  const placeOf = (key: string) => bandOf(key)?.place ?? 0;
  const labelOf = (key: string) => data.lines.find((line) => line.class === key)?.label ?? bandOf(key)?.label ?? key;
  const all = data.rss_bytes[shown] ?? 0;
  const choose = (moment: number) => go({ moment }, true);
  const highest = data.rss_bytes.indexOf(Math.max(...data.rss_bytes));
  const time = data.times_ns[shown] ?? null;
  const isDark = isDrawnDark();
  const chosenClass = tree.classes[tree.nodes.id.indexOf(address.select)] ?? '';
  return (
    <section class={`resident${isLoading ? ' is-old' : ''}`}>
      <div class="view-tools">
        <span><strong title={exactBytes(all)}>{formatBytes(all)}</strong> resident{data.of ? ` of ${data.of}` : ''}{time !== null && data.rss_bytes.length > 1 ? ` at ${formatDuration(time)}` : ''}{data.names[shown] ? `, ${data.names[shown]}` : ''}</span>
        {data.rss_bytes.length > 1 && (
          <>
            <label>Moment <input type="range" min={0} max={data.rss_bytes.length - 1} value={shown} aria-valuetext={time === null ? undefined : formatDuration(time)} onInput={(event) => choose(Number(event.currentTarget.value))} /></label>
            <button type="button" class="button" aria-pressed={shown === highest} onClick={() => choose(highest)}>Most</button>
            <button type="button" class="button" aria-pressed={shown === data.rss_bytes.length - 1} onClick={() => choose(-1)}>Last</button>
          </>
        )}
        {isLoading && <span class="quiet" role="status">loading…</span>}
      </div>
      <div class="resident-body" tabIndex={0} role="group" aria-label="Resident memory">
        {data.findings.map((finding) => (
          <article key={finding.sentence} class="card finding is-resident">
            <p class="sentence">{finding.sentence}</p>
            <ul class="evidence">{finding.evidence.map((text) => <li key={text}>{text}</li>)}</ul>
          </article>
        ))}
        {data.rss_bytes.length > 1 && <ResidentBands answer={data} shown={shown} onChoose={choose} />}
        <div class="resident-map">
          <TreemapCanvas
            answer={tree} nameOf={(node) => tree.names[node] ?? ''} colourOf={(node, depth) => placeColour(placeOf(tree.classes[node] ?? ''), isDrawnDark(), depth)} amount={formatBytes} isBytes word="resident"
            chosen={address.select} label={`Treemap of ${formatBytes(all)} resident. Arrow keys walk.`} onChoose={(id) => go({ select: id }, true)} onEnter={(id) => go({ select: id }, true)} onLeave={() => go({ select: '' }, true)}
          />
        </div>
        {data.pages && data.pages.class.length > 0 && <PageStrip pages={data.pages} labelOf={labelOf} placeOf={placeOf} />}
        <section class="card resident-lines">
          <table class="plain">
            <thead><tr><th>What</th><th>More</th><th>Resident</th><th>Share</th><th>Shared with others</th></tr></thead>
            <tbody>
              {data.lines.map((line) => (
                <tr key={line.class} class={line.class === chosenClass ? 'is-on' : ''}>
                  <td><i class="swatch" style={{ background: placeSeriesColour(placeOf(line.class), isDark) }} />{line.label}</td><td class="quiet">{line.note}</td>
                  <td title={withHalf(line, 'bytes', exactBytes, exactBytes)}>{withHalf(line, 'bytes', formatBytes, formatBytes)}</td><td>{formatPercent(line.bytes, all)}</td><td title={exactBytes(line.shared_bytes)}>{line.shared_bytes > 0 ? formatBytes(line.shared_bytes) : ''}</td>
                </tr>
              ))}
              <tr><td>all</td><td /><td title={exactBytes(all)}>{formatBytes(all)}</td><td>{formatPercent(all, all)}</td><td /></tr>
            </tbody>
          </table>
          {data.limits.map((limit) => <p key={limit} class="quiet">not told: {limit}</p>)}
          {!data.pages && <p class="quiet">Pages by address stand in answers of <code>heapr explain PID --format json</code>, and in a series of them (<code>--every 60 -o FILE</code>).</p>}
        </section>
      </div>
    </section>
  );
}
