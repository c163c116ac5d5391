/** Page of saved answers of `heapr explain`: resident memory of a process. */
import { useState } from 'preact/hooks';
import type { OpenFile } from '../api/types';
import { CommandLine } from '../filter/filter-bar';
import { plural } from '../format';
import { ResidentView } from './resident-view';

export function ResidentPage({ file }: { file: OpenFile }) {
  const [told, setTold] = useState<{ command: string | null; error: string | null }>({ command: null, error: null });
  const onCommand = (command: string | null, error: string | null) => setTold((old) => (old.command === command && old.error === error ? old : { command, error }));
  return (
    <div class="snapshot">
      <div class="filter-row">
        <span class="grow"><strong>Resident memory</strong> of {file.resident?.of || 'a process'}, {plural(file.resident?.moment_count ?? 0, 'moment')}</span>
        <CommandLine command={told.command} />
      </div>
      <div class="view" tabIndex={-1} role="region" aria-label="Resident memory"><ResidentView file={file} onCommand={onCommand} /></div>
    </div>
  );
}
