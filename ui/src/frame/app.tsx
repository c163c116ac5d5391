/** Frame of the page: files above, the view of the chosen file below, shortcuts everywhere. */
import { useEffect, useState } from 'preact/hooks';
import { useAddress } from '../address/use-address';
import { request } from '../api/client';
import type { OpenFile } from '../api/types';
import { forgetAnswers } from '../api/use-answer';
import { formatBytes } from '../format';
import { ResidentPage } from '../resident/resident-page';
import { SnapshotPage } from '../snapshot/snapshot-page';
import { TracePage } from '../trace/trace-page';
import { copyText } from './clipboard';
import { Message } from './message';
import { Notes } from './notes';
import { OpenFile as OpenFileButton } from './open-file';
import { SessionBar, useHeld } from './session-bar';
import { ShareMenu } from './share-menu';
import { Shortcuts, useShortcuts } from './shortcuts';
import { showFile } from './show-file';
import { type Theme, chooseTheme, chosenTheme } from './theme';
import { useFiles } from './use-files';

const THEMES: Theme[] = ['system', 'light', 'dark'];
const KIND_NAMES = { trace: 'trace', v8: 'V8 snapshot', resident: 'answers of heapr explain', native: 'native snapshot', live: 'live session' };

export function App() {
  const address = useAddress();
  const known = useFiles();
  const { files, version, error, askAgain } = known;
  // The graph of a trace is shown with the trace.
  const shownFiles = (files ?? []).filter((candidate) => !candidate.graph);
  const [theme, setTheme] = useState(chosenTheme());
  const [said, setSaid] = useState('');
  const newest = files?.find((candidate) => candidate.file === address.file) ?? shownFiles[0];
  const { file, isHeld, setHeld } = useHeld(newest);
  const nextTheme = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
    chooseTheme(next);
    setTheme(next);
  };
  const share = async () => {
    try {
      await copyText(location.href);
      setSaid('address copied');
    } catch (failure) {
      setSaid(failure instanceof Error ? failure.message : String(failure));
    }
    setTimeout(() => setSaid(''), 3000);
  };
  // With many files, or in a narrow window, the tab of the shown file may be out of view.
  useEffect(() => document.querySelector('.file-tab.is-on')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }), [file?.file, files?.length]);
  const help = useShortcuts({ files: shownFiles, nextTheme, share: () => void share() });
  useEffect(() => {
    document.title = file ? `${file.name} – heapr` : 'heapr';
  }, [file?.name]);

  return (
    <div class="page">
      <header class="top-bar">
        <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('.view')?.focus()}>Skip to the view</button>
        <h1 title={version ? `heapr ${version}` : 'heapr'}>heapr</h1>
        <nav class="files" aria-label="Files">
          {shownFiles.map((candidate) => (
            <button
              key={candidate.file} type="button" class={`file-tab${candidate === newest ? ' is-on' : ''}`} aria-current={candidate === newest ? 'page' : undefined}
              title={`${candidate.path}\n${candidate.snapshot?.runtime ? `heap of ${candidate.snapshot.runtime}` : KIND_NAMES[candidate.kind] ?? candidate.kind}, ${formatBytes(candidate.file_bytes)}`} onClick={() => showFile(candidate, newest)}
            >
              <span class={`dot is-${candidate.session?.state === 'recording' ? 'recording' : candidate.state}`} aria-hidden="true" />
              {candidate.name}
            </button>
          ))}
        </nav>
        <span class="quiet" role="status">{said}</span>
        <OpenFileButton askAgain={askAgain} />
        <ShareMenu file={file} />
        <button type="button" class="button" title="Light, dark, or as the system (T)" onClick={nextTheme}>Theme: {theme}</button>
        <button type="button" class="button" title="Keyboard shortcuts (?)" aria-label="Keyboard shortcuts" onClick={help.toggle}>?</button>
      </header>
      <main class="main">
      {error && <Message kind="error">{error}</Message>}
      <Notes />
      {file && <FileNotes file={file} askAgain={askAgain} />}
      {newest?.session && <SessionBar file={newest} isHeld={isHeld} setHeld={setHeld} askAgain={askAgain} />}
      {file?.state === 'opening' && !file.trace && !file.snapshot && !file.resident && <Opening file={file} />}
      {file && (file.trace || file.snapshot) && (file.snapshot && file.kind !== 'trace' && file.kind !== 'live'
        ? <SnapshotPage key={`${file.file} ${file.generation ?? 0}`} file={file} files={shownFiles} />
        : file.trace ? <TracePage key={file.file} file={file} files={files ?? []} /> : null)}
      {file?.resident && <ResidentPage key={`${file.file} ${file.generation ?? 0}`} file={file} />}
      {!files && !error && <p class="empty" role="status">Loading…</p>}
      {known.static && (
        <Message kind="note">
          Written by heapr view --static{known.static.made_unix_ns > 0 ? ` on ${new Date(known.static.made_unix_ns / 1e6).toISOString().slice(0, 16).replace('T', ' ')} UTC` : ''}: its filters are those that were recorded, and ranges and frames where it has sums; the rest of long tables needs <code>heapr view</code> on the file itself.{known.static.is_anonymous && ' Folders, command lines and texts are left out.'}
          {known.static.left_out.length > 0 && <span class="quiet"> Left out: {known.static.left_out.slice(0, 3).join('; ')}{known.static.left_out.length > 3 ? ` and ${known.static.left_out.length - 3} more` : ''}.</span>}
        </Message>
      )}
      {files?.length === 0 && <p class="empty">No file is open. Start with: heapr view FILE…</p>}
      </main>
      {help.isOpen && <Shortcuts close={help.toggle} />}
    </div>
  );
}

function Opening({ file }: { file: OpenFile }) {
  return (
    <div class="opening" role="status">
      <p>Opening {file.name} ({formatBytes(file.file_bytes)})</p>
      {file.tasks.map((task) => <label key={task.what}>{task.what} <progress max={Math.max(1, task.all)} value={task.done} /></label>)}
    </div>
  );
}

/** Warnings on a file, and the progress of reading it. */
function FileNotes({ file, askAgain }: { file: OpenFile; askAgain: () => void }) {
  const reopen = async () => {
    try {
      await request('/api/reopen', { file: file.file });
    } finally {
      forgetAnswers();
      askAgain();
    }
  };
  const says: Partial<Record<OpenFile['state'], string>> = {
    gone: `${file.path} has vanished; what was read is still shown where it is known.`,
    changed: `${file.path} was replaced or cut off after it was opened.`,
    grown: `${file.path} has grown since it was opened; shown is what was there.`,
  };
  const note = says[file.state];
  const loss = file.trace?.loss;
  const lost = loss ? ([
    [loss.events_lost, 'event', 'lost'], [loss.stacks_lost, 'stack', 'lost'], [loss.records_invalid, 'record', 'invalid'], [loss.processes_refused, 'process', 'not traced'],
  ] as const).filter(([count]) => count > 0).map(([count, what, how]) => `${count.toLocaleString('en')} ${what}${count === 1 ? '' : what.endsWith('s') ? 'es' : 's'} ${how}`) : [];
  const damage = file.trace?.damage ?? [];
  // Damage is shown below with readable numbers, so that its warning is left out.
  const warnings = file.warnings.filter((warning) => damage.length === 0 || !warning.startsWith('damaged file:'));
  const problems = file.warnings.length > 0 ? [] : (file.snapshot?.problems ?? []);
  return (
    <>
      {file.state === 'failed' && <Message kind="error">{file.name}: {file.error ?? 'it cannot be opened'}{file.offset !== null ? ` (offset ${file.offset.toLocaleString('en')})` : ''}</Message>}
      {note && <Message kind="warning">{note} <button type="button" class="button" onClick={() => void reopen()}>Open again</button></Message>}
      {warnings.map((warning) => <Message key={warning} kind="warning">{warning}</Message>)}
      {lost.length > 0 && file.warnings.length === 0 && <Message kind="warning">{lost.join(', ')}: the amounts below are too small.</Message>}
      {damage.length > 0 && (
        <Message kind="warning">
          The file is damaged at {damage.slice(0, 3).map((place) => `offset ${place.offset.toLocaleString('en')} (${formatBytes(place.bytes)}, ${place.what})`).join(', ')}
          {damage.length > 3 ? ` and ${damage.length - 3} more places` : ''}: what lies there is missing below.
        </Message>
      )}
      {problems.length > 0 && <Message kind="warning">{problems.slice(0, 3).join('; ')}</Message>}
      {file.state === 'ready' && file.tasks.some((task) => task.done < task.all) && (
        <div class="tasks" role="status">
          {file.tasks.map((task) => <label key={task.what}>{task.what} <progress max={Math.max(1, task.all)} value={task.done} /></label>)}
        </div>
      )}
    </>
  );
}
