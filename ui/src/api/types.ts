/** The JSON of the HTTP API (docs/api.md). Only shapes: what the numbers mean stands there. */

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

export interface Metrics {
  outstanding_bytes: number;
  outstanding_count: number;
  total_bytes: number;
  total_count: number;
  realloc_count: number;
  peak_bytes: number;
  peak_count: number;
  temporary_count: number;
}

export interface TraceProcess {
  process: number;
  pid: number;
  name: string;
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

export interface SnapshotFacts {
  node_count: number;
  edge_count: number;
  total_bytes: number;
  exposes_internals: boolean;
  root_id: number;
  problems: (string | { offset?: number; what?: string })[];
}

/** A snapshot of native heaps in a trace. */
export interface NativeSnapshot {
  number: number;
  name: string;
  time_ns: number;
  trigger: string;
  blocks: number;
  bytes: number;
  processes: { pid: number | null; name: string; rss_bytes: number | null; blocks: number; bytes: number }[];
  notes: string[];
}

export type SessionState = 'recording' | 'full' | 'ended' | 'cancelled' | 'lost';

/** A session that was opened while it ran. */
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

/** The filter: fields are the long options of `heapr report`, values its values as text. */
export interface Filter {
  pid?: string[];
  heap?: string[];
  thread?: string[];
  range?: [string, string];
  lifetime?: [string, string];
  size?: [string, string];
  at?: string;
  temporary?: boolean;
  type?: string;
  require_frames?: string[];
  cull_frames?: string[];
  no_default_cull?: boolean;
  /** What a native snapshot holds: its number. */
  snapshot?: string;
}

export interface Frame {
  module: string | null;
  symbol: string | null;
  file: string | null;
  line: number | null;
  inlined: boolean;
  offset: number;
}

export interface TimelineSeries {
  name: string;
  filter: Filter | null;
  id: string;
  values: number[];
}

export interface TimelineAnswer {
  from_ns: number;
  to_ns: number;
  bins: number;
  live_bytes: number[];
  live_count: number[];
  most_bytes: number[];
  alloc_bytes: number[];
  alloc_count: number[];
  free_count: number[];
  series: TimelineSeries[];
  rest: number[];
  rss: { pid: number; time_ns: number[]; rss_bytes: number[] }[];
  markers: Marker[];
  snapshots: { time_ns: number; number?: number; name?: string; trigger?: string; bytes?: number; blocks?: number; pids?: number[] }[];
  peak: { time_ns: number; bytes: number; count: number } | null;
}

export interface Group extends Metrics {
  id: string;
  frames: Frame[];
  frame_count: number;
  thread?: { tid: number; name: string; pid: number | null } | null;
  oldest_ns?: number;
  newest_ns?: number;
  mean_age_ns?: number;
  growth?: number[];
}

export interface HeapTotals extends Totals {
  pid: number;
  process: string;
  heap: string;
}

export interface ReportAnswer {
  command: string | null;
  totals: Totals;
  heaps: HeapTotals[];
  group_count: number;
  match_count: number;
  all: Metrics;
  matched: Metrics;
  offset: number;
  groups: Group[];
}

export interface StackFrame extends Frame {
  culled: boolean;
  id: string;
  source: { first_line: number; lines: string[]; is_newer: boolean } | null;
}

export interface FlameAnswer {
  command: string | null;
  value: string;
  total: number;
  node_count: number;
  names: string[];
  frames: { id: string; symbol: number; module: number; offset: number; line?: number | null; inlined?: boolean }[];
  nodes: {
    id: string[];
    parent: number[];
    frame: number[];
    value?: number[];
    before?: number[];
    after?: number[];
    /** Not in a difference. */
    self?: number[];
    left_out?: number[];
  };
}

export interface FrameGroup extends Metrics {
  id: string;
  frame: Frame;
}

export interface FrameAnswer {
  command: string | null;
  frame: Frame;
  inclusive: Metrics;
  self: Metrics;
  callers: FrameGroup[];
  callees: FrameGroup[];
}

export interface HistogramBucket {
  from: number;
  last: number;
  total_count: number;
  total_bytes: number;
  outstanding_count: number;
  outstanding_bytes: number;
}

export interface Histogram {
  of: string;
  unit: string;
  buckets: HistogramBucket[];
}

export interface TypeSum {
  type: string;
  command: string | null;
  count: number;
  bytes: number;
}

export interface DiffGroup {
  names: string[];
  before: Metrics;
  after: Metrics;
  delta: number;
}

export interface DiffAnswer {
  command: string | null;
  before: Metrics;
  after: Metrics;
  group_count: number;
  match_count: number;
  groups: DiffGroup[];
}

export interface HeapObject {
  id: number;
  name: string;
  class: string;
  type: string;
  distance: number;
  shallow_bytes: number;
  retained_bytes: number;
  child_count: number;
  dom_state: string | null;
  system?: boolean;
}

export interface EdgeRow extends HeapObject {
  edge: string;
  edge_type: string;
}

export interface ClassRow {
  class: string;
  class_key: string;
  place: string | null;
  object_count: number;
  distance: number;
  shallow_bytes: number;
  retained_bytes: number;
}

export interface ClassDiffRow {
  class: string;
  class_key: string;
  place: string | null;
  new_count: number;
  deleted_count: number;
  count_delta: number;
  new_bytes: number;
  deleted_bytes: number;
  bytes_delta: number;
}

export interface PathStep {
  name: string;
  id: number;
  held_as: string;
  place: string | null;
}

export interface ObjectAnswer {
  object: HeapObject;
  /** The whole name, or the whole string. */
  text: string | null;
  place: string | null;
  dominator: HeapObject | null;
  dominated_count: number;
  command: string | null;
}

export interface Suspect {
  name: string;
  confidence: 'high' | 'medium' | 'low';
  reasons: string[];
  owner_id: number;
  owner_class: string;
  owner_count: number;
  place: string | null;
  growth_bytes: number;
  growth_count: number;
  growth_bytes_at: number[];
  retained_bytes_at: (number | null)[];
  collects: {
    class: string;
    count: number;
    bytes: number;
    example_id: number | null;
    example_text: string | null;
    example_place: string | null;
  }[];
  also_held_by: (string | { name: string; id: number })[];
  path: PathStep[];
}

export interface Owner {
  name: string;
  id: number;
  retained_bytes: number;
  count: number;
  class: string;
  class_count: number;
  place: string | null;
  path: PathStep[];
}

export interface TreemapAnswer {
  names: string[];
  nodes: {
    id: (string | number | null)[];
    parent: number[];
    name: number[];
    value: number[];
    self: number[];
    left_out: number[];
  };
}

/** Answers that carry rows of one kind. */
export interface RowsAnswer<Row> {
  rows: Row[];
  row_count: number;
  command?: string | null;
  total_bytes?: number;
  warnings?: string[];
  kept_count?: number;
  is_cut?: boolean;
}

/** A row of a native snapshot: frames are `module!symbol`, innermost first. */
export interface NativeRow {
  id: string | null;
  frames: string[];
  bytes: number;
  blocks: number;
  youngest_ns: number;
  mean_age_ns: number;
  oldest_ns: number;
}

export interface NativeSummary extends RowsAnswer<NativeRow> {
  shown: number;
  bytes: number;
  blocks: number;
  oldest_ns: number;
  youngest_ns: number;
  mean_age_ns: number;
}

export interface TakenSnapshot {
  file: number;
  number: number;
  name: string;
  time_ns: number;
  trigger: string;
  bytes: number;
  blocks: number;
}

export interface NativeDiffRow {
  id: string | null;
  frames: string[];
  state: string;
  bytes_before: number;
  bytes_after: number;
  bytes_delta: number;
  blocks_delta: number;
  bytes_new: number | null;
  blocks_new: number | null;
  bytes_gone: number | null;
  blocks_gone: number | null;
  /** By snapshot. */
  bytes: number[];
}

export interface NativeDiff extends RowsAnswer<NativeDiffRow> {
  snapshots: TakenSnapshot[];
  is_one_recording: boolean;
  bytes_delta: number;
  blocks_delta: number;
  bytes_new: number | null;
  bytes_gone: number | null;
}

export interface NativeSuspect {
  id: string | null;
  frames: string[];
  sureness: string;
  bytes_per_hour: number;
  growth_bytes: number;
  rising_share: number;
  chance: number;
  kept_share: number | null;
  oldest_ns: number;
  bytes: number[];
}

export interface NativeStatistics {
  command: string | null;
  bytes: number;
  blocks: number;
  heaps: NativePart[];
  threads: NativePart[];
  processes: NativePart[];
  sizes: Histogram | null;
  ages: Histogram | null;
}

export interface NativePart {
  name: string;
  bytes: number;
  blocks: number;
}
