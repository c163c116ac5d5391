/** The answers' types of crates/server, written by its test `answer_types`: not to be edited. */
import type { Amounts } from './metrics';
import type { TotalIntervals } from './metrics';

export interface Bucket extends TotalIntervals {
  from: number;
  last: number;
  total_count: number;
  total_bytes: number;
  outstanding_count: number;
  outstanding_bytes: number;
}

/** Neighbouring cells. */
export interface CellRun {
  /** The first one. */
  cell: number;
  /** Its address, as hexadecimal text: no number of JavaScript holds all of them. */
  start_avma: string;
}

/** Half of the 95 % intervals of a change's amounts that are estimates. */
export interface ChangeIntervals {
  before_bytes_plus_minus?: number;
  after_bytes_plus_minus?: number;
  bytes_delta_plus_minus?: number;
  count_delta_plus_minus?: number;
  new_bytes_plus_minus?: number;
  new_count_plus_minus?: number;
  gone_bytes_plus_minus?: number;
  gone_count_plus_minus?: number;
}

/** Which allocations of a recording a finding is about, in the words of the options of `heapr report`. */
export interface Chosen {
  /** `peak`, or a time. */
  at?: string;
  /** Only what was freed at once. */
  temporary?: boolean;
  /** Only stacks with this frame. */
  require_frames?: string[];
  /** The order of stacks; empty: by what is outstanding. */
  sort?: string;
}

/** What came and went of a class. */
export interface ClassDiffRow {
  class: string;
  class_key: string;
  /** Of its constructor. */
  place: string | null;
  new_count: number;
  deleted_count: number;
  count_delta: number;
  new_bytes: number;
  deleted_bytes: number;
  bytes_delta: number;
}

/** A class. */
export interface ClassRow {
  class: string;
  class_key: string;
  /** Of its constructor. */
  place: string | null;
  object_count: number;
  distance: number;
  shallow_bytes: number;
  retained_bytes: number;
}

/** A class over several snapshots: one number for each. */
export interface ClassSeriesRow {
  class: string;
  place: string | null;
  /** Its key in each snapshot that has it. */
  class_keys: (string | null)[];
  object_count_at: number[];
  shallow_bytes_at: number[];
  retained_bytes_at: number[];
  count_growth: number;
  growth_bytes: number;
  /** 0 to 1. */
  steadiness: number;
}

/** A part of the file that can't be read. */
export interface Damage {
  offset: number;
  bytes: number;
  what: string;
}

export interface DiffAnswer {
  schema: string;
  command: string | null;
  before: Amounts;
  after: Amounts;
  /** Half of the 95 % interval of their difference in what is sorted by; 0: it was counted. */
  delta_plus_minus?: number;
  group_count: number;
  match_count: number;
  offset: number;
  groups: DiffGroup[];
}

export interface DiffFlameAnswer {
  schema: string;
  command: string | null;
  value: string;
  before: number;
  after: number;
  node_count: number;
  names: string[];
  frames: UnionFrame[];
  nodes: DiffFlameNodes;
}

export interface DiffFlameNodes {
  id: string[];
  parent: number[];
  frame: number[];
  before: number[];
  after: number[];
  /** Half of the 95 % intervals of both and of their difference, where they are estimates. */
  before_plus_minus?: number[];
  after_plus_minus?: number[];
  delta_plus_minus?: number[];
}

export interface DiffGroup {
  names: string[];
  /** Which of them is the program's own. */
  own: number | null;
  before: Amounts;
  after: Amounts;
  delta: number;
  /** Half of its 95 % interval; 0: it was counted. */
  delta_plus_minus?: number;
}

/** An object and the edge that leads to it, or from it. */
export interface EdgeRow extends HeapObject {
  edge: string;
  edge_type: string;
}

/** What is being read of a file, and how far. */
export interface FileTask {
  what: string;
  done: number;
  all: number;
}

/** The open files. */
export interface Files {
  schema: string;
  heapr_version: string;
  files: OpenFile[];
}

/** A sentence about what stands out. */
export interface Finding {
  /** What it is about. */
  kind: Kind;
  /** One or two sentences, with the own frame's name and the figures. */
  sentence: string;
  /** How sure it is. */
  confidence: string;
  /** Whose it is; `None`: nobody's of the program's code. */
  own_frame: OwnFrame | null;
  /** How much memory it is about. */
  bytes: number;
  /** Half of the 95 % interval of that, where it is an estimate. */
  bytes_plus_minus?: number;
  /** It is never freed, not even at the program's end. */
  left: boolean;
  /** What speaks for it, a sentence each. */
  evidence: string[];
  /** The command that shows more. */
  command: string;
  /** What that command chooses; of recordings. */
  chosen?: Chosen;
  /** What the own frame held over time: moments in ns, and bytes. */
  curve?: ([number, number])[];
  /** Half of the 95 % interval of each of its amounts, where they are estimates. */
  curve_plus_minus?: number[];
}

export interface FlameAnswer {
  schema: string;
  command: string;
  value: string;
  total: number;
  /** Half of its 95 % interval; 0: it was counted. */
  total_plus_minus?: number;
  node_count: number;
  names: string[];
  frames: FlameFrame[];
  nodes: FlameNodes;
}

export interface FlameFrame {
  id: string;
  symbol: number;
  module: number;
  offset: number;
  /** Source file and line, where lines are told apart. */
  file?: number;
  line?: number;
}

export interface FlameNodes extends NodeIntervals {
  id: string[];
  parent: number[];
  frame: number[];
  value: number[];
  self: number[];
  left_out: number[];
}

/** A frame; what is not known is null. */
export interface Frame {
  /** Path of its file. */
  module: string | null;
  /** Demangled. */
  symbol: string | null;
  /** Source file. */
  file: string | null;
  /** Line in it, from 1. */
  line: number | null;
  /** Inlined into the next one. */
  inlined: boolean;
  /** Bytes from the start of the symbol, or of the module. */
  offset: number;
}

export interface FrameAnswer {
  schema: string;
  command: string | null;
  id: string;
  frame: Frame | null;
  inclusive: Amounts;
  self: Amounts;
  callers: FrameGroup[];
  caller_count: number;
  callees: FrameGroup[];
  callee_count: number;
}

export interface FrameGroup extends Amounts {
  id: string;
  frame: Frame | null;
}

export interface FunctionRow {
  id: string;
  frame: Frame | null;
  /** It is the program's. */
  is_own: boolean;
  inclusive: Amounts;
  own: Amounts;
}

export interface FunctionsAnswer {
  schema: string;
  command: string;
  totals: Totals;
  function_count: number;
  match_count: number;
  offset: number;
  functions: FunctionRow[];
}

/** Blocks of a native heap of which the same is known. */
export interface GraphKind {
  /** Its key in tables. */
  kind: string;
  /** In words. */
  heading: string;
  /** How many. */
  count: number;
  /** How large together. */
  bytes: number;
}

/** A row of a table. */
export interface Group extends Amounts {
  id: string | null;
  frames: Frame[];
  frame_count: number;
  /** The program's own frame, and its place among all of the stack's. */
  own?: Own;
  thread?: Thread;
}

/** Totals of a heap of a process. */
export interface Heap extends Totals {
  pid: number;
  process: string;
  heap: string;
}

/** An object. */
export interface HeapObject {
  id: number;
  name: string;
  class: string;
  type: string;
  /** -1: nothing leads here. */
  distance: number;
  /** Only system roots lead here. */
  system?: boolean;
  shallow_bytes: number;
  retained_bytes: number;
  child_count: number;
  dom_state: string | null;
}

/** A histogram. */
export interface Histogram {
  of: string;
  unit: string;
  buckets: Bucket[];
}

/** See the module. */
export interface History {
  time_ns: number[];
  live_bytes: number[];
  live_count: number[];
  /** Half of the 95 % intervals of both, where they are estimates. */
  live_bytes_plus_minus?: number[];
  live_count_plus_minus?: number[];
  event_count: number[];
}

/** A finding's words. */
export interface KeptFinding {
  /** What is so. */
  sentence: string;
  /** How sure that is. */
  confidence: string;
  /** What speaks for it. */
  evidence: string[];
}

/** A class. */
export interface KeptLine {
  /** Its key. */
  class: string;
  /** Its name. */
  label: string;
  /** What is resident. */
  bytes: number;
  /** Half of the 95 % interval of that; 0: it was counted. */
  bytes_plus_minus: number;
  /** What other processes have mapped, too. */
  shared_bytes: number;
  /** What stands beside the number in texts. */
  note: string;
  /** The largest first; some may be missing. */
  parts: KeptPart[];
}

/** What belongs to a class. */
export interface KeptPart {
  /** Which of that kind. */
  name: string;
  /** What is resident of it. */
  bytes: number;
}

/** What a finding is about. */
export type Kind = 'growth' | 'peak' | 'churn' | 'idle' | 'resident' | 'overhead' | 'duplicates' | 'frees' | 'unseen';

export interface Leak extends Group {
  oldest_ns: number | null;
  newest_ns: number | null;
  mean_age_ns: number | null;
  growth: number[];
  /** Half of the 95 % interval of each, where they are estimates. */
  growth_plus_minus?: number[];
}

export interface LeaksAnswer {
  schema: string;
  command: string;
  totals: Totals;
  group_count: number;
  match_count: number;
  all: Amounts;
  matched: Amounts;
  offset: number;
  end_ns: number;
  groups: Leak[];
}

/** One of the lists. */
export interface Listing<R> {
  schema: string;
  command: string;
  rows: R;
  /** Whether there are more. */
  is_cut: boolean;
}

/** Half of the 95 % intervals of amounts that are estimates. */
export interface LiveIntervals {
  block_bytes_plus_minus?: number;
  block_count_plus_minus?: number;
}

/** What was lost. */
export interface Loss {
  events_lost: number;
  stacks_lost: number;
  events_late: number;
  records_invalid: number;
  processes_refused: number;
}

/** A marker. */
export interface Marker {
  time_ns: number;
  text: string;
}

/** A change; what is new and gone is known within one recording. */
export interface NativeChange extends ChangeIntervals {
  before_bytes: number;
  after_bytes: number;
  bytes_delta: number;
  count_delta: number;
  new_bytes: number | null;
  new_count: number | null;
  gone_bytes: number | null;
  gone_count: number | null;
}

/** Two or more snapshots side by side. */
export interface NativeDiff extends NativeChange {
  schema: string;
  command: string | null;
  snapshots: TakenSnapshot[];
  is_one_recording: boolean;
  warnings: string[];
  row_count: number;
  offset: number;
  rows: NativeDiffRow[];
}

/** A line of a comparison. */
export interface NativeDiffRow extends NativeChange {
  id: string | null;
  /** Which of the frames is the program's own. */
  own: number | null;
  /** `module!symbol`, the innermost first. */
  frames: string[];
  state: string;
  /** 0 to 1: how steadily the bytes grew over the snapshots. */
  steadiness: number;
  /** By snapshot. */
  block_bytes: number[];
  /** By snapshot. */
  block_count: number[];
  /** Half of the 95 % intervals of the bytes, where they are estimates. */
  block_bytes_plus_minus?: number[];
}

/** A heap, a process or a thread. */
export interface NativePart extends LiveIntervals {
  name: string;
  block_bytes: number;
  block_count: number;
}

/** A line of a snapshot. */
export interface NativeRow extends LiveIntervals {
  id: string | null;
  /** Which of the frames is the program's own. */
  own: number | null;
  /** `module!symbol`, the innermost first. */
  frames: string[];
  block_bytes: number;
  block_count: number;
  youngest_ns: number;
  mean_age_ns: number;
  oldest_ns: number;
}

/** A snapshot without its blocks. */
export interface NativeSnapshot extends LiveIntervals {
  number: number;
  time_ns: number;
  event_index: number;
  name: string;
  /** Why it was taken, in words. */
  trigger: string;
  block_count: number;
  block_bytes: number;
  export_ns: number;
  processes: SnapshotProcess[];
  notes: string[];
}

/** What a snapshot consists of. */
export interface NativeStatistics {
  schema: string;
  command: string;
  shown: number;
  total_bytes: number;
  total_count: number;
  /** Half of their 95 % intervals; 0: they were counted. */
  total_bytes_plus_minus?: number;
  total_count_plus_minus?: number;
  heaps: NativePart[];
  processes: NativePart[];
  threads: NativePart[];
  sizes: Histogram | null;
  ages: Histogram | null;
}

/** What one snapshot holds. */
export interface NativeSummary {
  schema: string;
  command: string;
  /** Its number. */
  shown: number;
  total_bytes: number;
  total_count: number;
  /** Half of their 95 % intervals; 0: they were counted. */
  total_bytes_plus_minus?: number;
  total_count_plus_minus?: number;
  oldest_ns: number;
  youngest_ns: number;
  mean_age_ns: number;
  warnings: string[];
  row_count: number;
  offset: number;
  rows: NativeRow[];
}

/** Beside the amounts of a tree's nodes: half of the 95 % interval of each, where they are estimates. */
export interface NodeIntervals {
  value_plus_minus?: number[];
  self_plus_minus?: number[];
  left_out_plus_minus?: number[];
}

/** All that is known of an object. */
export interface ObjectAnswer {
  schema: string;
  command: string;
  object: HeapObject;
  /** The whole name, or the whole string. */
  text: string;
  place: string | null;
  dominator: HeapObject;
  dominated_count: number;
  trace_node_id: number | null;
}

/** An open file. */
export interface OpenFile {
  file: number;
  kind: string;
  name: string | null;
  path: string;
  file_bytes: number;
  generation: number;
  state: string;
  error: string | null;
  /** Where in the file the error is. */
  offset: number | null;
  tasks: FileTask[];
  warnings: string[];
  trace: TraceFacts | null;
  snapshot: SnapshotFacts | null;
  resident: ResidentFacts | null;
  session: SessionFacts | null;
}

/** The program's own frame of a stack. */
export interface Own extends Frame {
  place: number;
}

/** The program's own code that a finding names. */
export interface OwnFrame {
  /** Path of the module. */
  module: string | null;
  /** Demangled. */
  symbol: string | null;
  /** Source file. */
  file: string | null;
  /** Line in it, from 1. */
  line: number | null;
}

/** Cells of one size; what is not mapped has none. */
export interface PageCells {
  /** Addresses in a cell. */
  cell_bytes: number;
  /** Where cells that follow one another begin. */
  runs: CellRun[];
  /** The classes that occur, by their keys. */
  classes: string[];
  /** Of each cell the class that has most of it, as a place in `classes`; `None`: nothing is resident. */
  class: (number | null)[];
  /** What is resident of each cell. */
  resident_bytes: number[];
}

export interface ReportAnswer {
  schema: string;
  command: string;
  totals: Totals;
  heaps: Heap[];
  group_count: number;
  match_count: number;
  all: Amounts;
  matched: Amounts;
  offset: number;
  groups: Group[];
}

/** What all of it was. */
export interface ResidentAnswer {
  schema: string;
  command: string;
  /** The process. */
  of: string;
  times_ns: (number | null)[];
  names: string[];
  rss_bytes: number[];
  /** The largest at the moment that is shown first. */
  bands: ResidentBand[];
  /** The moment that is told in full. */
  shown: number;
  lines: KeptLine[];
  pages: PageCells | null;
  findings: KeptFinding[];
  /** What could not be told. */
  limits: string[];
}

/** A class over all moments. */
export interface ResidentBand {
  class: string;
  label: string;
  /** Its place among all classes: its colour. */
  place: number;
  /** By moment. */
  values: number[];
  /** Half of their 95 % intervals, where they are estimates. */
  plus_minus?: number[];
}

/** What is known of it before anything is asked. */
export interface ResidentFacts {
  /** The process. */
  of: string;
  moment_count: number;
}

/** The resident memory of a process. */
export interface RssSeries {
  pid: number | null;
  time_ns: number[];
  rss_bytes: number[];
}

/** What is said of a recording whose numbers are estimates. */
export interface Sampling {
  /** The largest mean distance of two samples, in bytes asked for. */
  mean_bytes: number;
  /** How sure the intervals are. */
  confidence: number;
}

/** A session that is looked at. */
export interface SessionFacts {
  name: string;
  state: string;
  shown_until_ns: number;
  trouble: string | null;
  /** As `heapr status --format json` has it. */
  status: unknown | null;
}

/** What is known of a snapshot before anything is asked. */
export interface SnapshotFacts {
  node_count: number;
  edge_count: number;
  total_bytes: number;
  exposes_internals: boolean;
  root_id: number;
  problems: string[];
}

/** A native snapshot on the time axis. */
export interface SnapshotMark {
  time_ns: number;
  number: number;
  name: string;
  trigger: string;
  block_bytes: number;
  block_count: number;
  /** Half of the 95 % interval of the bytes; 0: they were counted. */
  block_bytes_plus_minus?: number;
  pids: number[];
}

/** A process in a snapshot. */
export interface SnapshotProcess extends LiveIntervals {
  pid: number | null;
  name: string;
  rss_bytes: number | null;
  block_count: number;
  block_bytes: number;
}

/** Lines around one. */
export interface Source {
  first_line: number;
  lines: string[];
  is_newer: boolean;
}

export interface SourcedFinding extends Finding {
  source: Source | null;
}

export interface StackFrame extends Frame {
  id: string;
  culled: boolean;
  source: Source | null;
}

/** A snapshot of a series. */
export interface TakenSnapshot extends LiveIntervals {
  file: number;
  number: number;
  name: string;
  time_ns: number;
  unix_ns: number;
  trigger: string;
  block_bytes: number;
  block_count: number;
  processes: string[];
}

export interface Thread {
  tid: number;
  name: string;
  pid: number | null;
}

export interface TimelineAnswer extends TimelineIntervals {
  schema: string;
  /** Why there is no course. */
  note: string | null;
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
  /** All that is resident, of the value `resident`. */
  resident_bytes: number[];
  rest: number[];
  rest_plus_minus?: number[];
  rss: RssSeries[];
  markers: Marker[];
  snapshots: SnapshotMark[];
  peak: TimelinePeak | null;
}

/** By bin half of the 95 % intervals of the curves, where those are estimated. */
export interface TimelineIntervals {
  live_bytes_plus_minus?: number[];
  live_count_plus_minus?: number[];
  most_bytes_plus_minus?: number[];
  alloc_bytes_plus_minus?: number[];
  alloc_count_plus_minus?: number[];
  free_count_plus_minus?: number[];
}

/** The most that was live. */
export interface TimelinePeak {
  time_ns: number;
  bytes: number;
  count: number;
  /** Half of their 95 % intervals; 0: they were counted. */
  bytes_plus_minus?: number;
  count_plus_minus?: number;
}

export interface TimelineSeries {
  name: string;
  filter: unknown;
  id: string | null;
  values: number[];
  /** Half of the 95 % interval of each, where they are estimates. */
  values_plus_minus?: number[];
}

/** Totals of the whole or of a heap; null: not known. */
export interface Totals extends TotalIntervals {
  alloc_count: number | null;
  alloc_bytes: number | null;
  free_count: number | null;
  /** Half of its 95 % interval; 0: it was counted. */
  free_count_plus_minus?: number;
  realloc_count: number | null;
  failed_count: number;
  outstanding_count: number | null;
  outstanding_bytes: number | null;
  temporary_count: number | null;
  peak_bytes: number | null;
  peak_count: number | null;
  peak_time_ns: number;
  unmatched_frees: number;
  inherited_frees: number;
  implied_frees: number;
}

/** What is known of a trace before anything is asked. */
export interface TraceFacts {
  duration_ns: number;
  start_unix_ns: number;
  event_count: number;
  is_complete: boolean;
  session: string;
  heapr_version: string;
  command_line: string[];
  loss: Loss;
  damage: Damage[];
  system: TraceSystem;
  processes: TraceProcess[];
  threads: TraceThread[];
  modules: TraceModule[];
  markers: Marker[];
  /** Languages whose frames its stacks have: what stands before a frame's name, and theirs. */
  languages: string[][];
  /** Which frames of such stacks are shown where a filter does not say: `mixed`, `own`, `native`. */
  lang_frames: string;
  /** What of the largest process's own memory is explained, and what it is. */
  own_memory: string[];
  /** Looks at the resident memory. */
  resident_samples: number;
  /** Native snapshots in the file. */
  snapshots: NativeSnapshot[];
  totals: Totals | null;
}

/** A file that was mapped. */
export interface TraceModule {
  path: string;
  build_id: string;
}

/** A process of the trace. */
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

/** The system that was recorded on. */
export interface TraceSystem {
  kernel: string;
  machine: string;
  distribution: string;
  cpu_count: number;
  memory_bytes: number;
  page_bytes: number;
}

/** A thread of the trace. */
export interface TraceThread {
  thread: number;
  process: number;
  tid: number;
  name: string;
  start_ns: number;
  end_ns: number | null;
}

/** The answer. */
export interface Treemap<I> {
  schema: string;
  command: string;
  total: number;
  /** Half of its 95 % interval; 0: it was counted. */
  total_plus_minus?: number;
  names: string[];
  nodes: TreemapNodes<I>;
}

export interface TreemapNodes<I> extends NodeIntervals {
  id: (I | null)[];
  parent: number[];
  name: number[];
  value: number[];
  self: number[];
  left_out: number[];
}

export interface TypeSum {
  type: string;
  command: string;
  count: number;
  bytes: number;
  /** Half of their 95 % intervals; 0: they were counted. */
  count_plus_minus?: number;
  bytes_plus_minus?: number;
}

export interface UnionFrame {
  id: string;
  symbol: number;
  module: number;
  offset: number;
}
