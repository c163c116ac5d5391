/** Change of the shown file. */
import { emptyFilter } from '../address/address';
import { go } from '../address/use-address';
import type { OpenFile } from '../api/types';

/** Shows another file, and clears the state that belongs to the old one alone. */
export function showFile(next: OpenFile, from: OpenFile | undefined): void {
  if (next.file === from?.file) return;
  const isSameKind = next.kind === from?.kind;
  const filter = emptyFilter();
  // A recording and the heaps of its processes have one time.
  const isSameTime = from !== undefined && timeOf(next) === timeOf(from);
  if (isSameTime) for (const name of ['range', 'at', 'pid'] as const) delete filter[name];
  go({
    file: next.file, select: '', root: '', focus: '', object: -1, class: '', ignore: [], before: -1, after: -1, ...(isSameTime ? {} : { seen: [] }),
    ...(isSameKind ? {} : { view: '', sort: '', ascending: false, match: '', kind: [], ...filter }),
  });
}

/** Number of the recording whose time a file has. */
function timeOf(file: OpenFile): number {
  return file.taken?.file ?? file.file;
}

/** Returns the heaps that were taken of the processes of a recording. */
export function heapsOf(recording: OpenFile, files: OpenFile[]): OpenFile[] {
  return files.filter(({ taken }) => taken?.file === recording.file);
}
