/** Properties that all views of a trace share. */
import type { Filter, OpenFile } from '../api/types';

export interface TraceViewProps {
  file: OpenFile;
  files: OpenFile[];
  filter: Filter;
  /** Told after each answer: the equal command line, and what is wrong with the filter. */
  onCommand: (command: string | null, error: string | null) => void;
}
