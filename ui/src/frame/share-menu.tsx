/** Menu to share what is shown: its address, a picture, a page of its own. */
import { useState } from 'preact/hooks';
import { filterOf } from '../address/address';
import { currentAddress, go } from '../address/use-address';
import { isStatic, requestFile } from '../api/client';
import type { OpenFile } from '../api/types';
import { formatDuration, parseTimeNs, timeArgument } from '../format';
import { chipsOf } from '../filter/filter-bar';
import { copyText, saveBlob } from './clipboard';
import { pagePicture } from './picture';
import { Popover } from './popover';

/** Moment of the shown filter, or the start of its range; empty without one. */
function momentNow(): string {
  const { at, range } = currentAddress();
  const ns = parseTimeNs(at !== '' && at !== 'peak' ? at : (range[0] ?? ''));
  return ns === null ? '' : timeArgument(ns);
}

export function ShareMenu({ file }: { file: OpenFile | undefined }) {
  const [said, setSaid] = useState('');
  const [choices, setChoices] = useState({ has_sources: false, is_anonymous: false });
  const [note, setNote] = useState('');
  const tell = async (work: () => Promise<string>) => {
    setSaid('…');
    try {
      setSaid(await work());
    } catch (failure) {
      setSaid(failure instanceof Error ? failure.message : String(failure));
    }
    setTimeout(() => setSaid(''), 5000);
  };
  const picture = () => tell(async () => {
    if (!file) throw new Error('no file is open');
    const view = document.querySelector('.tabs [aria-selected=true]')?.textContent ?? '';
    const filters = chipsOf(currentAddress()).map((chip) => chip.label);
    const facts = [`${file.name}${file.trace ? `, recorded over ${formatDuration(file.trace.duration_ns)}` : ''}${filters.length > 0 ? `; ${filters.join(', ')}` : ''}`];
    saveBlob(`${file.name}.png`, await pagePicture(`${view}: ${file.name}`, facts, document.querySelector('.filter-row .command code')?.textContent ?? ''));
    return 'saved';
  });
  const page = () => tell(async () => {
    if (!file) throw new Error('no file is open');
    const blob = await requestFile('/api/page', { file: file.file, filter: file.trace ? filterOf(currentAddress()) : {}, address: location.hash.slice(1), ...choices });
    saveBlob(`${file.name}.html`, blob);
    return 'saved; it shows what the program does: look who may see it';
  });
  const pin = () => {
    if (note.trim() === '') return;
    const at = momentNow();
    go({ notes: [...currentAddress().notes, `${at === '' ? '' : `${at} `}${note.trim()}`] });
    setNote('');
  };
  return (
    <Popover label="Share" title="What is shown, for others">
      <button type="button" class="menu-item" title="For this machine, while heapr view runs on these files (S)" onClick={() => void tell(async () => { await copyText(location.href); return 'address copied'; })}>Copy address</button>
      <button type="button" class="menu-item" title="Timeline and picture with title, file, filters and command, as a PNG" onClick={() => void picture()}>Save as picture</button>
      {!isStatic() && <button type="button" class="menu-item" title="One HTML file that needs no server, with the filters and the view that are shown now" onClick={() => void page()}>Save as one page</button>}
      {!isStatic() && (
        <>
          <label class="menu-choice"><input type="checkbox" checked={choices.has_sources} disabled={choices.is_anonymous} onChange={(event) => setChoices({ has_sources: event.currentTarget.checked, is_anonymous: false })} /> with source lines of own frames</label>
          <label class="menu-choice"><input type="checkbox" checked={choices.is_anonymous} onChange={(event) => setChoices({ has_sources: false, is_anonymous: event.currentTarget.checked })} /> anonymous: no folders, command lines, texts</label>
        </>
      )}
      <form class="menu-choice" onSubmit={(event) => { event.preventDefault(); pin(); }}>
        <input type="text" aria-label="Note" placeholder={`note${momentNow() ? ` at ${momentNow()}` : ''}`} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
        <button type="button" class="button" onClick={pin}>Pin</button>
      </form>
      <p class="quiet menu-said" role="status">{said}</p>
    </Popover>
  );
}
