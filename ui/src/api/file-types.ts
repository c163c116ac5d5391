/** The open files and their facts in the HTTP API. */
import type { SnapshotFacts } from './heap-types';
import type { NativeSnapshot } from './native-types';

export type FileKind = 'trace' | 'v8' | 'native' | 'live';

export type FileState = 'opening' | 'ready' | 'failed' | 'gone' | 'changed' | 'grown';

export interface Totals {
  alloc_count: number;
  alloc_bytes: number;
  free_count: number;
  realloc_count: number;
  failed_count: number;
  outstanding_count: number;
  outstanding_bytes: number;
  temporary_count: number;
  peak_bytes: number;
  peak_count: number;
  peak_time_ns: number;
  unmatched_frees: number;
  inherited_frees: number;
  implied_frees: number;
}

export interface TraceProcess {
  process: number;
  pid: number;
  name: string;
  /** The program's file: not always called as the process, where that was started by a link. */
  executable: string;
  command_line: string[];
  start_ns: number;
  end_ns: number | null;
  exit_code: number | null;
  signal: number | null;
}

export interface TraceThread {
  thread: number;
  process: number;
  tid: number;
  name: string;
  start_ns: number;
  end_ns: number | null;
}

export interface Loss {
  events_lost: number;
  stacks_lost: number;
  events_late: number;
  records_invalid: number;
  processes_refused: number;
}

export interface Damage {
  offset: number;
  bytes: number;
  what: string;
}

export interface Marker {
  time_ns: number;
  text: string;
}

export interface TraceFacts {
  duration_ns: number;
  start_unix_ns: number;
  event_count: number;
  is_complete: boolean;
  command_line: string[];
  loss: Loss;
  damage: Damage[];
  system: Record<string, string | number | null> | null;
  processes: TraceProcess[];
  threads: TraceThread[];
  modules: { path: string; build_id: string | null }[];
  markers: Marker[];
  /** Native snapshots in the file. */
  snapshots?: NativeSnapshot[];
  totals: Totals | null;
}

export type SessionState = 'recording' | 'full' | 'ended' | 'cancelled' | 'lost';

export interface SessionFacts {
  name: string;
  state: SessionState;
  shown_until_ns: number;
  trouble?: string | null;
  status: {
    mode: string; duration_ns: number; event_count: number; events_lost: number; live_bytes: number; live_count: number; peak_bytes: number;
    file_bytes: number; process_count: number; live_process_count: number; write_error: string | null; remarks: string[];
  } | null;
}

export interface SessionHistory {
  history: { time_ns: number[]; live_bytes: number[]; live_count: number[]; event_count: number[] };
}

export interface OpenFile {
  file: number;
  kind: FileKind;
  name: string;
  path: string;
  file_bytes: number;
  state: FileState;
  error: string | null;
  offset: number | null;
  tasks: { what: string; done: number; all: number }[];
  warnings: string[];
  generation?: number;
  trace?: TraceFacts | null;
  snapshot?: SnapshotFacts | null;
  session?: SessionFacts | null;
}

export interface Files {
  heapr_version: string;
  files: OpenFile[];
  /** In a page without a server. */
  static?: { made_unix_ns: number; left_out: string[] };
}
