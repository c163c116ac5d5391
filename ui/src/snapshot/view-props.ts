/** Properties that all views of a snapshot share, and the function that shows an object. */
import { go } from '../address/use-address';
import type { OpenFile } from '../api/types';

export interface SnapshotViewProps {
  file: OpenFile;
  files: OpenFile[];
  /** Total of which percentages are taken. */
  totalBytes: number;
  onCommand: (command: string | null) => void;
}

/** Shows an object below the view. */
export function showObject(id: number | undefined): void {
  if (id !== undefined) go({ object: id }, true);
}
