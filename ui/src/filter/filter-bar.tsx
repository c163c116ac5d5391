/** All filters in one bar, and below them the command line that gives the same numbers. */
import { useState } from 'preact/hooks';
import { type Address, emptyFilter } from '../address/address';
import { go, refusedStep, useAddress } from '../address/use-address';
import type { OpenFile } from '../api/types';
import { formatDuration, parseTimeNs } from '../format';
import { copyText } from '../frame/clipboard';
import { FilterForm } from './filter-form';
import { Popover } from '../frame/popover';

interface Chip {
  label: string;
  title: string;
  without: Partial<Address>;
}

/** Returns one chip for each filter that is set. */
export function chipsOf(address: Address): Chip[] {
  const chips: Chip[] = [];
  const lists = [
    ['pid', 'process'], ['heap', 'heap'], ['thread', 'thread'], ['require_frames', 'with frame'], ['innermost_frames', 'only of'], ['cull_frames', 'culled'],
  ] as const;
  const named = (text: string) => {
    const ns = parseTimeNs(text);
    return ns === null ? text : formatDuration(ns);
  };
  if (address.range.length === 2) chips.push({ label: `range ${address.range.map(named).join(' – ')}`, title: `--range ${address.range.join(' ')}`, without: { range: [], type: '' } });
  if (address.at) chips.push({ label: address.at === 'peak' ? 'live at the peak' : `live at ${named(address.at)}`, title: `--at ${address.at}`, without: { at: '' } });
  if (address.snapshot) chips.push({ label: `snapshot ${address.snapshot}`, title: `--snapshot ${address.snapshot}`, without: { snapshot: '' } });
  if (address.type) chips.push({ label: address.type.toUpperCase(), title: `--type ${address.type}`, without: { type: '' } });
  if (address.temporary) chips.push({ label: 'temporary', title: '--temporary', without: { temporary: false } });
  if (address.lifetime.length === 2) chips.push({ label: `lifetime ${address.lifetime.map(named).join(' – ')}`, title: `--lifetime ${address.lifetime.join(' ')}`, without: { lifetime: [] } });
  if (address.size.length === 2) chips.push({ label: `size ${address.size.join(' – ')}`, title: `--size ${address.size.join(' ')}`, without: { size: [] } });
  for (const [name, word] of lists) {
    for (const value of address[name]) {
      chips.push({ label: `${word} ${value}`, title: `--${name.replace('_', '-')} ${value}`, without: { [name]: address[name].filter((other) => other !== value) } });
    }
  }
  if (address.hide_known) chips.push({ label: 'known harmless left out', title: '--hide-known', without: { hide_known: false } });
  if (address.no_default_cull) chips.push({ label: 'allocator frames shown', title: '--no-default-cull', without: { no_default_cull: false } });
  return chips;
}

export function FilterBar({ file, error }: { file: OpenFile; error: string | null }) {
  const address = useAddress();
  const chips = chipsOf(address);
  return (
    <div class="filter-bar" role="region" aria-label="Filters">
      <Popover label="Filter" title="Add or change filters (F)" side="left" class="filter-add">
        <FilterForm file={file} />
      </Popover>
      {chips.length === 0 && <span class="quiet">everything</span>}
      {chips.map((chip) => (
        <button key={chip.title} type="button" class="chip" title={`${chip.title}: click to remove`} aria-label={`Remove filter ${chip.label}`} onClick={() => go(chip.without)}>
          <span class="chip-label">{chip.label}</span><span aria-hidden="true">×</span>
        </button>
      ))}
      {chips.length > 1 && <button type="button" class="button" title="Remove all filters (X)" onClick={() => go(emptyFilter())}>Clear</button>}
      {error && <span class="filter-error" role="alert">{error}</span>}
      {!error && refusedStep() && <span class="filter-refused quiet" role="status">{refusedStep()}</span>}
    </div>
  );
}

/** Command line with the same numbers, ready to copy. */
export function CommandLine({ command, note = 'This command line gives the same numbers' }: { command: string | null | undefined; note?: string }) {
  const [isCopied, setCopied] = useState(false);
  if (!command) return null;
  const copy = async () => {
    try {
      await copyText(command);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch {
      setCopied(false);
    }
  };
  return (
    <div class="command">
      <code title={note}>{command}</code>
      <button type="button" class="button command-copy" title="Copy the command line (C)" onClick={() => void copy()}>{isCopied ? 'Copied' : 'Copy'}</button>
    </div>
  );
}
