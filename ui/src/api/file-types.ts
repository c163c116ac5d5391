/** Open files and their facts in the HTTP API. */
import type * as answers from './answers';
import type { Filter } from './trace-types';

export type { Damage, Loss, Marker, Totals, TraceFacts, TraceProcess, TraceThread } from './answers';

export type FileKind = 'trace' | 'v8' | 'resident' | 'native' | 'live';

export type FileState = 'opening' | 'ready' | 'failed' | 'gone' | 'changed' | 'grown';

export type SessionState = 'recording' | 'full' | 'ended' | 'cancelled' | 'lost';

export interface SessionFacts extends Omit<answers.SessionFacts, 'state' | 'status'> {
  state: SessionState;
  status: {
    mode: string; duration_ns: number; event_count: number; events_lost: number; live_bytes: number; live_count: number; peak_bytes: number; live_bytes_plus_minus?: number; live_count_plus_minus?: number; peak_bytes_plus_minus?: number;
    file_bytes: number; process_count: number; live_process_count: number; write_error: string | null; remarks: string[];
  } | null;
}

export interface SessionHistory {
  history: answers.History;
}

/** File in the page. `native` and `live` are the page's own kinds: views of a trace. */
export interface OpenFile extends Omit<answers.OpenFile, 'name' | 'kind' | 'state' | 'session'> {
  name: string;
  kind: FileKind;
  state: FileState;
  session: SessionFacts | null;
}

export interface Files extends Omit<answers.Files, 'schema' | 'files'> {
  files: OpenFile[];
  /** Facts of a page without a server. */
  static?: { made_unix_ns: number; left_out: string[]; is_anonymous?: boolean; source_lines?: number; address?: string; choices?: { title: string; file: number; filter: Filter }[] };
}
