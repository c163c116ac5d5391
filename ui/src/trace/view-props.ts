/** Properties that all views of a trace share. */
import type { Filter, OpenFile } from '../api/types';

export interface TraceViewProps {
  file: OpenFile;
  files: OpenFile[];
  filter: Filter;
  /** Called after each answer with the equal command line, and with the error of the filter. */
  onCommand: (command: string | null, error: string | null) => void;
}
