/** Every filter of `heapr report` as a field. */
import { useRef, useState } from 'preact/hooks';
import { type Address, addedFilter, defaultAddress, emptyFilter } from '../address/address';
import { go, useAddress } from '../address/use-address';
import { isStatic, recordedFilters, spanSums } from '../api/client';
import type { Filter, OpenFile } from '../api/types';
import { snapshotTitle, snapshotsOf } from '../native/native-columns';
import { PATTERNS_MAX, patternsOf } from './cull-list';

const TYPES: [string, string][] = [
  ['', 'all'], ['aifi', 'AIFI: allocated inside, freed inside'], ['aifo', 'AIFO: allocated inside, freed outside'],
  ['aofi', 'AOFI: allocated outside, freed inside'], ['aofo', 'AOFO: allocated outside, freed outside'],
];

/** Choice of the filters whose answers are in a page without a server. */
function RecordedFilters({ file }: { file: OpenFile }) {
  const address = useAddress();
  const choices = recordedFilters().filter((choice) => choice.file === file.file);
  const isChosen = (filter: Filter) => Object.keys(filter).every((name) => JSON.stringify(address[name as keyof Address]) === JSON.stringify(filter[name as keyof Filter]));
  return (
    <div class="filter-form">
      {spanSums(file.file) !== null && (
        <>
          <p class="quiet">A range (its ends move to the nearest of {spanSums(file.file)?.bordersNs.length} moments) and frames are counted from the sums in this page.</p>
          <Pair name="range" label="Range" first="from: 1.5s" second="to: 2s" value={address.range} />
          <One label="With frame" placeholder="server!load*" value={address.require_frames[0] ?? ''} onDone={(frame) => go({ ...emptyFilter(), range: address.range, require_frames: frame === '' ? [] : [frame] })} />
        </>
      )}
      <p class="quiet">This page holds the answers for these filters; any other needs heapr view on the file itself.</p>
      <button type="button" class="menu-item" onClick={() => go(emptyFilter())}>everything</button>
      <button type="button" class="menu-item" aria-pressed={address.at === 'peak'} onClick={() => go({ ...emptyFilter(), at: 'peak' })}>live at the peak</button>
      {choices.map((choice) => <button key={choice.title} type="button" class="menu-item" aria-pressed={isChosen(choice.filter)} onClick={() => go({ ...emptyFilter(), ...addedFilter(defaultAddress(), choice.filter) })}>{choice.title}</button>)}
    </div>
  );
}

export function FilterForm({ file }: { file: OpenFile }) {
  return isStatic() ? <RecordedFilters file={file} /> : <EveryFilter file={file} />;
}

function EveryFilter({ file }: { file: OpenFile }) {
  const address = useAddress();
  const snapshots = snapshotsOf(file);
  const processes = file.trace?.processes ?? [];
  const threads = [...new Set((file.trace?.threads ?? []).map((thread) => thread.name).filter((name) => name !== ''))].sort();
  return (
    <div class="filter-form">
      <Pair name="range" label="Range" first="from: 1.5s" second="to: 2s" value={address.range} />
      <Pair name="lifetime" label="Lifetime" first="at least: 0" second="below: 1ms" value={address.lifetime} />
      <Pair name="size" label="Size" first="at least: 4K" second="below: 1M" value={address.size} />
      <One label="Live at" placeholder="peak, or a time: 1.2s" value={address.at} onDone={(at) => go({ at })} />
      <label class="field">
        <span>Type against the range</span>
        <select value={address.type} disabled={address.range.length !== 2} onChange={(event) => go({ type: event.currentTarget.value })}>
          {TYPES.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
        </select>
      </label>
      {snapshots.length > 0 && (
        <label class="field">
          <span>Native snapshot</span>
          <select value={address.snapshot} onChange={(event) => go({ snapshot: event.currentTarget.value, ...(event.currentTarget.value === '' ? {} : { range: [], at: '', type: '', temporary: false }) })}>
            <option value="">none: the whole time</option>
            {snapshots.map((snapshot) => <option key={snapshot.number} value={String(snapshot.number)}>{snapshotTitle(snapshot)}</option>)}
          </select>
        </label>
      )}
      <More name="pid" label="Process" placeholder="pid" address={address} choices={processes.map((process) => [String(process.pid), `${process.pid} ${process.name}`])} />
      <More name="thread" label="Thread" placeholder="tid, or a name with *" address={address} choices={threads.map((name) => [name, name])} />
      <More name="heap" label="Heap" placeholder="malloc, mmap, or a number" address={address} choices={[['malloc', 'malloc'], ['mmap', 'mmap']]} />
      <More name="require_frames" label="With frame" placeholder="module!symbol, or one of them" address={address} choices={[]} />
      <More name="innermost_frames" label="Innermost frame" placeholder="module!symbol, or one of them" address={address} choices={[]} />
      <More name="cull_frames" label="Cull frame" placeholder="module!symbol, or one of them" address={address} choices={[]} />
      <CullList address={address} />
      <label class="check"><input type="checkbox" checked={address.temporary} onChange={() => go({ temporary: !address.temporary })} /> only temporary allocations</label>
      <label class="check"><input type="checkbox" checked={address.no_default_cull} onChange={() => go({ no_default_cull: !address.no_default_cull })} /> show the allocator's own frames</label>
      <label class="check" title="What libraries keep until the end: libstdc++'s pool, locales, the dynamic linker's lists"><input type="checkbox" checked={address.hide_known} onChange={() => go({ hide_known: !address.hide_known })} /> leave out what is known to be harmless</label>
    </div>
  );
}

function One({ label, placeholder, value, onDone }: { label: string; placeholder: string; value: string; onDone: (text: string) => void }) {
  return (
    <label class="field">
      <span>{label}</span>
      <input type="text" placeholder={placeholder} value={value} onChange={(event) => onDone(event.currentTarget.value.trim())} />
    </label>
  );
}

function Pair({ name, label, first, second, value }: { name: 'range' | 'lifetime' | 'size'; label: string; first: string; second: string; value: string[] }) {
  // Current text of both fields: the second may change before the first is drawn.
  const written = useRef<[string, string]>([value[0] ?? '', value[1] ?? '']);
  const [draft, setDraft] = useState(written.current);
  const set = (at: 0 | 1, text: string) => {
    const next: [string, string] = at === 0 ? [text.trim(), written.current[1]] : [written.current[0], text.trim()];
    written.current = next;
    setDraft(next);
    if (next[0] !== '' && next[1] !== '') go({ [name]: next });
    else if (next[0] === '' && next[1] === '') go({ [name]: [] });
  };
  return (
    <div class="field">
      <span>{label}</span>
      <input type="text" aria-label={`${label}, ${first}`} placeholder={first} value={draft[0]} onChange={(event) => set(0, event.currentTarget.value)} />
      <input type="text" aria-label={`${label}, ${second}`} placeholder={second} value={draft[1]} onChange={(event) => set(1, event.currentTarget.value)} />
    </div>
  );
}

/**
 * Culls the frames that a file lists. The file is read here, so that a shared address has the
 * frames themselves.
 */
function CullList({ address }: { address: Address }) {
  const [trouble, setTrouble] = useState('');
  const read = async (input: HTMLInputElement) => {
    const list = input.files?.[0];
    if (!list) return;
    const patterns = patternsOf(await list.text());
    input.value = '';
    if (patterns.length > PATTERNS_MAX) return setTrouble(`${list.name} has ${patterns.length} frames; an address holds ${PATTERNS_MAX}. heapr report --cull-lists takes any number.`);
    setTrouble(patterns.length === 0 ? `${list.name} lists no frames.` : '');
    go({ cull_frames: [...new Set([...address.cull_frames, ...patterns])] });
  };
  return (
    <>
      <label class="field" title="One frame a line, as heapr report --cull-lists reads them">
        <span>Cull list</span>
        <input type="file" onChange={(event) => void read(event.currentTarget)} />
      </label>
      {trouble && <p class="filter-error" role="alert">{trouble}</p>}
    </>
  );
}

interface MoreProps {
  name: 'pid' | 'thread' | 'heap' | 'require_frames' | 'innermost_frames' | 'cull_frames';
  label: string;
  placeholder: string;
  address: Address;
  choices: string[][];
}

/** Field whose values add up; each is a chip in the bar. */
function More({ name, label, placeholder, address, choices }: MoreProps) {
  const id = `choices-${name}`;
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="text" placeholder={placeholder} list={choices.length > 0 ? id : undefined}
        onChange={(event) => {
          const text = event.currentTarget.value.trim();
          if (text !== '' && !address[name].includes(text)) go({ [name]: [...address[name], text] });
          event.currentTarget.value = '';
        }}
      />
      {choices.length > 0 && <datalist id={id}>{choices.slice(0, 500).map(([value, title]) => <option key={value} value={value}>{title}</option>)}</datalist>}
    </label>
  );
}
