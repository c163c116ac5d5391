/**
 * Suspects that grew from snapshot to snapshot, the likeliest leak first; of one snapshot the
 * largest owners.
 */
import { useEffect } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { useAnswer } from '../api/use-answer';
import type { Owner, PathStep, Suspect } from '../api/types';
import { exactBytes, formatBytes, formatCount, formatSignedBytes, plural } from '../format';
import { Message } from '../frame/message';
import { PathPicture } from './path-picture';
import { type SnapshotViewProps, showObject } from './view-props';

const VERDICTS: Record<Suspect['confidence'], string> = { high: 'almost certainly a leak', medium: 'likely a leak', low: 'probably not a leak' };
const DOUBTS: Record<string, string> = {
  'other-program': 'the snapshots are of different programs', 'other-numbering': 'the snapshots number their objects differently: objects are matched by their names', 'wrong-order': 'the snapshots are given in the wrong order: what shrank is said to grow', 'other-capture-mode': 'the snapshots were taken in different ways',
  'entries-missing': 'the file has no references from Maps and Sets to their entries (Bun writes none): who keeps them is told by the size of tables',
};

interface SuspectsAnswer {
  suspects?: Suspect[];
  owners?: Owner[];
  growth_bytes?: number;
  doubts?: (string | { doubt?: string; kind?: string; snapshot?: number })[];
  command?: string | null;
}

export function SuspectsView({ file, files, onCommand }: SnapshotViewProps) {
  const address = useAddress();
  const all = files.filter((other) => other.kind === file.kind && other.state !== 'failed').map((other) => other.file);
  const asked = address.select === 'one' || all.length < 2 ? [file.file] : all;
  const { data, error, isLoading } = useAnswer<SuspectsAnswer>('/api/snapshot/suspects', { files: asked, top: 20 });
  useEffect(() => onCommand(data?.command ?? null), [data]);
  useEffect(() => () => onCommand(null), []);
  const likely = (data?.suspects ?? []).filter(({ confidence }) => confidence !== 'low');
  const unlikely = (data?.suspects ?? []).filter(({ confidence }) => confidence === 'low');
  return (
    <section class={`suspects${isLoading ? ' is-old' : ''}`}>
      {all.length < 2
        ? <Message kind="note">One snapshot shows who owns most; two or more of one process show who grew: <code>heapr view A.heapsnapshot B.heapsnapshot C.heapsnapshot</code></Message>
        : (
          <div class="view-tools">
            <div class="switch" role="group" aria-label="Snapshots">
              <button type="button" aria-pressed={asked.length > 1} onClick={() => go({ select: '' })}>Growth over {formatCount(all.length)} snapshots</button>
              <button type="button" aria-pressed={asked.length === 1} onClick={() => go({ select: 'one' })}>Owners in {file.name}</button>
            </div>
            {data?.growth_bytes !== undefined && <span class="quiet" title="What came less what went, without code and object shapes">the heap {data.growth_bytes < 0 ? 'shrank' : 'grew'} by {formatBytes(Math.abs(data.growth_bytes))}, code and object shapes left out</span>}
          </div>
        )}
      {error && <Message kind="error">{error.message}</Message>}
      {doubtsOf(data?.doubts ?? []).map((doubt) => <Message key={doubt} kind={doubt.startsWith(DOUBTS['other-numbering'] ?? '?') ? 'note' : 'warning'}>{doubt}</Message>)}
      {!data && !error && <p class="empty" role="status">Comparing…</p>}
      <ol class="suspect-list">
        {likely.map((suspect, at) => <SuspectCard key={suspect.owner_id} suspect={suspect} number={at + 1} isOpen={at === 0} />)}
        {unlikely.length > 0 && (
          <li>
            <details open={likely.length === 0}>
              <summary class="quiet">{plural(unlikely.length, 'other')} that grew and {unlikely.length === 1 ? 'is' : 'are'} probably no leak</summary>
              <ol class="suspect-list">{unlikely.map((suspect, at) => <SuspectCard key={suspect.owner_id} suspect={suspect} number={likely.length + at + 1} isOpen={false} />)}</ol>
            </details>
          </li>
        )}
        {(data?.owners ?? []).map((owner, at) => (
          <li key={owner.id} class="card">
            <header>
              <h2>{at + 1}. {owner.name} <span class="quiet">@{owner.id}</span></h2>
              <button type="button" class="button" onClick={() => showObject(owner.id)}>Show object</button>
            </header>
            <p><strong title={exactBytes(owner.retained_bytes)}>{formatBytes(owner.retained_bytes)}</strong> retained{owner.place && <span class="quiet"> · {owner.place}</span>}</p>
            <HeldBy path={owner.path} isOpen={false} />
          </li>
        ))}
        {data && (data.suspects ?? data.owners ?? []).length === 0 && <li class="empty">No suspect: nothing grew.</li>}
      </ol>
    </section>
  );
}

/** Returns each doubt once, with the snapshots that it concerns. */
function doubtsOf(doubts: NonNullable<SuspectsAnswer['doubts']>): string[] {
  const about = new Map<string, number[]>();
  for (const doubt of doubts) {
    const name = typeof doubt === 'string' ? doubt : (doubt.doubt ?? doubt.kind ?? '');
    const snapshots = about.get(name) ?? [];
    if (typeof doubt === 'object' && doubt.snapshot !== undefined) snapshots.push(doubt.snapshot + 1);
    about.set(name, snapshots);
  }
  return [...about].map(([name, snapshots]) => `${DOUBTS[name] ?? name}${snapshots.length === 0 ? '' : ` (snapshot${snapshots.length === 1 ? '' : 's'} ${snapshots.join(', ')})`}`);
}

function SuspectCard({ suspect, number, isOpen }: { suspect: Suspect; number: number; isOpen: boolean }) {
  return (
    <li class={`card suspect is-${suspect.confidence}`}>
      <header>
        <h2>{number}. {suspect.name} <span class={`verdict is-${suspect.confidence}`}>{VERDICTS[suspect.confidence]}</span></h2>
        <button type="button" class="button" onClick={() => showObject(suspect.owner_id)}>Show {suspect.owner_class} @{suspect.owner_id}</button>
      </header>
      <dl class="suspect-facts">
        <div><dt>grew by</dt><dd>{suspect.growth_bytes_at.map(formatSignedBytes).join(' → ')} ({plural(suspect.growth_count, 'object')})</dd></div>
        <div><dt>retains</dt><dd>{suspect.retained_bytes_at.map((bytes) => (bytes === null ? '–' : formatBytes(bytes))).join(' → ')}</dd></div>
        {suspect.collects.length > 0 && <div>
          <dt>collects</dt>
          <dd>
            {suspect.collects.map((kind) => (
              <div key={kind.class}>
                {formatCount(kind.count)} more of <strong>{kind.class}</strong> ({formatBytes(kind.bytes)})
                {kind.example_id !== null && <>, one is <button type="button" class="link" onClick={() => showObject(kind.example_id ?? undefined)}>@{kind.example_id}</button></>}
                {kind.example_text !== null && <span class="text-value"> "{kind.example_text}"</span>}
                {kind.example_place !== null && <span class="quiet"> {kind.example_place}</span>}
              </div>
            ))}
          </dd>
        </div>}
        {suspect.place && <div><dt>made at</dt><dd>{suspect.place}</dd></div>}
        {suspect.also_held_by.length > 0 && <div><dt>also in</dt><dd>{suspect.also_held_by.map((holder) => (typeof holder === 'string' ? holder : `${holder.name} @${holder.id}`)).join(', ')}</dd></div>}
        <div><dt>because</dt><dd>{suspect.reasons.join('; ')}</dd></div>
      </dl>
      <HeldBy path={suspect.path} isOpen={isOpen} />
    </li>
  );
}

function HeldBy({ path, isOpen }: { path: PathStep[]; isOpen: boolean }) {
  if (path.length === 0) return null;
  return (
    <details open={isOpen}>
      <summary>held by</summary>
      <PathPicture paths={[path]} onChoose={(step) => showObject(step.id)} />
    </details>
  );
}
