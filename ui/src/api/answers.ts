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

/** A function in all builds. */
export interface BuildFunction {
  /** Name in each build; null where it holds nothing. */
  names: (string | null)[];
  /** Frame in each build, with the place that holds most. */
  frames: (Frame | null)[];
  amounts: Amounts[];
  /** True if the function has another name in a build. */
  renamed: boolean;
  /** Growth from the first build to the last. */
  delta: number;
  /** Half of the 95 % interval of `delta`; 0: counted exactly. */
  delta_plus_minus?: number;
}

/** Neighbouring cells. */
export interface CellRun {
  /** Index of the first cell. */
  cell: number;
  /** Address of the first cell, as hexadecimal text: JavaScript's numbers cannot hold all addresses. */
  start_avma: string;
}

/** Halves of the 95 % intervals of a change's amounts, if they are estimates. */
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

/** Allocations of a recording that a finding is about, as options of `heapr report`. */
export interface Chosen {
  /** Moment: `peak`, or a time. */
  at?: string;
  /** Whether only temporary allocations are chosen. */
  temporary?: boolean;
  /** Names of frames that a stack must contain. */
  require_frames?: string[];
  /** Order of stacks; empty: by outstanding bytes. */
  sort?: string;
}

/** New and deleted objects of a class. */
export interface ClassDiffRow {
  class: string;
  class_key: string;
  /** Location of the constructor. */
  place: string | null;
  new_count: number;
  deleted_count: number;
  count_delta: number;
  new_bytes: number;
  deleted_bytes: number;
  bytes_delta: number;
  /** Objects without any of the earlier contents; `None` where contents tell nothing. */
  refilled_count: number | null;
}

/** A class. */
export interface ClassRow {
  class: string;
  class_key: string;
  /** Location of the constructor. */
  place: string | null;
  object_count: number;
  distance: number;
  shallow_bytes: number;
  retained_bytes: number;
  /** Bytes of native memory that would be freed with all objects of the class, whatever the filter is. */
  native_bytes?: number;
}

/** A class over several snapshots, with one number for each. */
export interface ClassSeriesRow {
  class: string;
  place: string | null;
  /** Key of the class in each snapshot that has it. */
  class_keys: (string | null)[];
  object_count_at: number[];
  shallow_bytes_at: number[];
  retained_bytes_at: number[];
  count_growth: number;
  growth_bytes: number;
  /** Steadiness of the growth, 0 to 1. */
  steadiness: number;
}

/** A part of the file that cannot be read. */
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
  /** Half of the 95 % interval of the difference in the sort key; 0: counted exactly. */
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
  /** Halves of the 95 % intervals of both sides and of their difference, if they are estimates. */
  before_plus_minus?: number[];
  after_plus_minus?: number[];
  delta_plus_minus?: number[];
}

export interface DiffFunctionsAnswer {
  schema: string;
  command: string | null;
  /** Largest change in words. */
  sentence: string;
  /** All amounts of each build. */
  totals: Amounts[];
  function_count: number;
  match_count: number;
  offset: number;
  functions: BuildFunction[];
}

export interface DiffGroup {
  names: string[];
  /** Index of the innermost frame of user code in `names`. */
  own: number | null;
  before: Amounts;
  after: Amounts;
  delta: number;
  /** Half of the 95 % interval of `delta`; 0: counted exactly. */
  delta_plus_minus?: number;
}

/** An object and the edge that leads to it, or from it. */
export interface EdgeRow extends HeapObject {
  edge: string;
  edge_type: string;
}

/** A live block. */
export interface Example {
  size_bytes: number;
  /** Time of the allocation. */
  born_ns: number;
  /** Age at the moment of the filter, or at the end. */
  age_ns: number;
  /** Name of the allocating thread; null if unknown. */
  thread: string | null;
  /** Id of the stack. */
  stack: string;
  /** Innermost frames, after culling. */
  frames: Frame[];
  own: Own | null;
}

export interface ExamplesAnswer {
  schema: string;
  blocks: Example[];
}

/** Progress of reading a file. */
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

/** Sentence about a fact that stands out, with its evidence. */
export interface Finding {
  /** Subject of the finding. */
  kind: Kind;
  /** One or two sentences, with the own frame's name and the figures. */
  sentence: string;
  /** Degree of certainty. */
  confidence: string;
  /** Own frame of the memory; `None`: unknown, or no code of the program. */
  own_frame: OwnFrame | null;
  /** Amount of memory in bytes. */
  bytes: number;
  /** Half of the 95 % interval of `bytes`, if that is an estimate; else 0. */
  bytes_plus_minus?: number;
  /** Whether at least half of the memory is never freed, not even at the program's end. */
  left: boolean;
  /** Sentences with evidence. */
  evidence: string[];
  /** Command that shows more. */
  command: string;
  /** Allocations that the command chooses; only in findings of recordings. */
  chosen?: Chosen;
  /** Live bytes of the own frame over time: pairs of a time in nanoseconds and bytes. */
  curve?: ([number, number])[];
  /** Half of the 95 % interval of each amount of `curve`, if they are estimates. */
  curve_plus_minus?: number[];
}

export interface FlameAnswer {
  schema: string;
  command: string;
  value: string;
  total: number;
  /** Half of the 95 % interval of `total`; 0: counted exactly. */
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
  /** Source file, if lines are told apart. */
  file?: number;
  line?: number;
  /** True if the code is the program's own. */
  is_own?: boolean;
}

export interface FlameNodes extends NodeIntervals {
  id: string[];
  parent: number[];
  frame: number[];
  value: number[];
  self: number[];
  left_out: number[];
}

/** A frame; unknown fields are null. */
export interface Frame {
  /** Path of the frame's file. */
  module: string | null;
  /** Demangled symbol. */
  symbol: string | null;
  /** Source file. */
  file: string | null;
  /** Source line, from 1. */
  line: number | null;
  /** True if the function is inlined into the next one. */
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
  /** True if the function is user code. */
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

/** Graph of a trace's native heap that is open as a file. */
export interface GraphFacts {
  /** Number of the trace in the list of files. */
  file: number;
  /** Number of the snapshot. */
  number: number;
  /** Process; null if the snapshot has one graph. */
  pid: number | null;
}

/** Amount that a variable, a stack frame or a mapping holds alone, or several together. */
export interface GraphHolder {
  /** Name, the same in each graph of a process. */
  name: string;
  /** Bytes of the blocks that would be freed with it. */
  retained_bytes: number;
  /** Number of these blocks. */
  retained_count: number;
  /** Growth since the first graph of the file; `None` if there is no other one. */
  growth_bytes: number | null;
}

/** Blocks of a native heap about which the same facts are known. */
export interface GraphKind {
  /** Key in tables. */
  kind: string;
  /** Heading in words. */
  heading: string;
  /** Number of blocks. */
  count: number;
  /** Bytes of the blocks. */
  bytes: number;
}

/** Leaks of a graph. */
export interface GraphLeaksAnswer {
  schema: string;
  command: string;
  /** Number of the snapshot. */
  shown: number;
  block_bytes: number;
  /** Why blocks called possibly leaked may be in use. */
  doubt: string | null;
  notes: string[];
  row_count: number;
  offset: number;
  rows: LeakedRow[];
}

/** A row of a table. */
export interface Group extends Amounts {
  id: string | null;
  frames: Frame[];
  frame_count: number;
  /** Innermost frame of user code, with its index among all frames of the stack. */
  own?: Own;
  /** Lines of the own frame, or of the innermost one, if the group sums stacks with several. */
  own_lines?: number[];
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
  /** Distance from the roots; -1: unreachable. */
  distance: number;
  /** Whether only system roots reach the object. */
  system?: boolean;
  shallow_bytes: number;
  retained_bytes: number;
  /** Bytes of native memory that would be freed with the object. */
  native_bytes?: number;
  child_count: number;
  dom_state: string | null;
}

/** A histogram. */
export interface Histogram {
  of: string;
  unit: string;
  buckets: Bucket[];
}

/** Columns of the status over time. */
export interface History {
  time_ns: number[];
  live_bytes: number[];
  live_count: number[];
  /** Halves of the 95 % intervals of both, if they are estimates. */
  live_bytes_plus_minus?: number[];
  live_count_plus_minus?: number[];
  event_count: number[];
}

/** Holders of a graph. */
export interface HoldersAnswer {
  schema: string;
  command: string;
  /** Number of the snapshot. */
  shown: number;
  block_bytes: number;
  held_by_one_bytes: number;
  held_by_several_bytes: number;
  /** Number of the snapshot since which growth is counted; null if there is no other graph. */
  growth_since: number | null;
  row_count: number;
  offset: number;
  rows: GraphHolder[];
}

/** Incident that a recording was kept for. */
export interface IncidentTold {
  /** Number in its folder. */
  number: number;
  /** Time of the death or of the warning, ns since 1970. */
  time_unix_ns: number;
  /** Report in sentences, the first one first. */
  sentences: string[];
}

/** Subject of a finding. */
export type Kind = 'growth' | 'peak' | 'churn' | 'idle' | 'resident' | 'overhead' | 'slices' | 'duplicates' | 'frees' | 'unseen';

export interface Leak extends Group {
  oldest_ns: number | null;
  newest_ns: number | null;
  mean_age_ns: number | null;
  growth: number[];
  /** Half of the 95 % interval of each value of `growth`, if they are estimates. */
  growth_plus_minus?: number[];
}

/** Leaked blocks of one kind, stack and type. */
export interface LeakedRow {
  id: string | null;
  /** Index of the innermost frame of user code. */
  own: number | null;
  kind: string;
  block_count: number;
  block_bytes: number;
  /** Bytes with the blocks that only these hold. */
  retained_bytes: number;
  circle_count: number;
  youngest_ns: number;
  oldest_ns: number;
  type_name: string | null;
  type_source: string | null;
  /** Frames as `module!symbol`, innermost first. */
  frames: string[];
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

/** Answer of a list. */
export interface Listing<R> {
  schema: string;
  command: string | null;
  rows: R;
  /** Whether the list was cut: further rows exist. */
  is_cut: boolean;
}

/** Live blocks of a line or of a part of a snapshot. */
export interface LiveBlocks {
  block_bytes: number;
  block_count: number;
  block_bytes_plus_minus?: number;
  block_count_plus_minus?: number;
}

/** Numbers of lost records. */
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

/** A change; new and gone blocks are known within one recording only. */
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

/** Comparison of two or more snapshots. */
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
  /** Index of the innermost frame of user code. */
  own: number | null;
  /** Frames as `module!symbol`, innermost first. */
  frames: string[];
  state: string;
  /** Steadiness of the growth in bytes over the snapshots, 0 to 1. */
  steadiness: number;
  /** Bytes in each snapshot. */
  block_bytes: number[];
  /** Number of blocks in each snapshot. */
  block_count: number[];
  /** Halves of the 95 % intervals of `block_bytes`, if they are estimates. */
  block_bytes_plus_minus?: number[];
}

/** A heap, a process or a thread. */
export interface NativePart extends LiveBlocks {
  name: string;
}

/** A line of a snapshot. */
export interface NativeRow extends LiveBlocks {
  id: string | null;
  /** Index of the innermost frame of user code. */
  own: number | null;
  /** Frames as `module!symbol`, innermost first. */
  frames: string[];
  youngest_ns: number;
  mean_age_ns: number;
  oldest_ns: number;
}

/** A snapshot without its blocks. */
export interface NativeSnapshot extends SnapshotBlocks {
  number: number;
  time_ns: number;
  event_index: number;
  name: string;
  /** Reason of the snapshot in words. */
  trigger: string;
  export_ns: number;
  processes: SnapshotProcess[];
  notes: string[];
  /** Whether the file has the references of a process at that moment. */
  has_graph: boolean;
}

/** Composition of a snapshot. */
export interface NativeStatistics extends TotalBlocks {
  schema: string;
  command: string;
  shown: number;
  heaps: NativePart[];
  processes: NativePart[];
  threads: NativePart[];
  sizes: Histogram | null;
  ages: Histogram | null;
}

/** Contents of one snapshot. */
export interface NativeSummary extends TotalBlocks {
  schema: string;
  command: string;
  /** Number of the snapshot. */
  shown: number;
  oldest_ns: number;
  youngest_ns: number;
  mean_age_ns: number;
  warnings: string[];
  row_count: number;
  offset: number;
  rows: NativeRow[];
}

/** Halves of the 95 % intervals beside the amounts of a tree's nodes, if these are estimates. */
export interface NodeIntervals {
  value_plus_minus?: number[];
  self_plus_minus?: number[];
  left_out_plus_minus?: number[];
}

/** Details of an object. */
export interface ObjectAnswer {
  schema: string;
  command: string | null;
  object: HeapObject;
  /** Whole name, or whole string. */
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
  /** Offset of the error in the file. */
  offset: number | null;
  tasks: FileTask[];
  warnings: string[];
  trace: TraceFacts | null;
  snapshot: SnapshotFacts | null;
  /** Trace whose graph the file is: the page shows it with that trace. */
  graph: GraphFacts | null;
  /** Moment of an open recording of its process at which a heap was taken. */
  taken: TakenFacts | null;
  resident: ResidentFacts | null;
  /** Incident that the trace is the recording of. */
  incident: IncidentTold | null;
  session: SessionFacts | null;
}

/** Innermost frame of user code in a stack. */
export interface Own extends Frame {
  place: number;
}

/** Own frame that a finding names. */
export interface OwnFrame {
  /** Path of the module. */
  module: string | null;
  /** Demangled name of the function. */
  symbol: string | null;
  /** Source file. */
  file: string | null;
  /** Line in `file`, from 1. */
  line: number | null;
}

export interface OwnFunctionRow extends Amounts {
  frame: Frame | null;
  /** Function that the frame calls in the largest stack, where the frame has no symbol. */
  called?: string;
  /** Id of the largest stack. */
  stack: string | null;
  stack_count: number;
}

export interface OwnFunctionsAnswer {
  schema: string;
  command: string;
  totals: Totals;
  all: Amounts;
  function_count: number;
  match_count: number;
  offset: number;
  own_functions: OwnFunctionRow[];
}

/** Cells of one size over all mapped addresses. */
export interface PageCells {
  /** Bytes of addresses in a cell. */
  cell_bytes: number;
  /** Runs of neighbouring cells. */
  runs: CellRun[];
  /** Keys of the classes that occur. */
  classes: string[];
  /** Class with the most resident bytes of each cell, as an index in `classes`; `None`: the cell has no resident bytes. */
  class: (number | null)[];
  /** Resident bytes of each cell. */
  resident_bytes: number[];
}

/** A function whose blocks lie in pages. */
export interface PageOwner {
  label: string;
  /** Id of one of its stacks. */
  stack: string;
  /** Free bytes of pages that its blocks keep, shared with the other blocks of each page. */
  free_bytes: number;
  /** Number of its blocks in pages that are at least half free. */
  block_count: number;
  /** Bytes of these blocks. */
  block_bytes: number;
  /** Bytes of all its blocks. */
  live_bytes: number;
}

/** Neighbouring cells. */
export interface PageRun {
  /** Index of the first cell. */
  cell: number;
  /** Address of the first cell, as hexadecimal text. */
  start_avma: string;
}

export interface PagesAnswer {
  schema: string;
  command: string;
  shown: number;
  time_ns: number;
  /** Process of the pages: of the chosen ones that with most live bytes; null without blocks. */
  pid: number | null;
  /** Number of chosen processes in the snapshot. */
  process_count: number;
  page_bytes: number;
  /** Number of pages with live blocks. */
  page_count: number;
  /** Bytes of live blocks in these pages. */
  live_bytes: number;
  /** Bytes of these pages that are in no live block: free, headers, or not malloc's. */
  free_bytes: number;
  /** Bytes of addresses in a cell. */
  cell_bytes: number;
  runs: PageRun[];
  /** Functions, by the free bytes that they keep. */
  owners: PageOwner[];
  /** Function with most live bytes in each cell, as an index in `owners`; null for any other. */
  owner: (number | null)[];
  /** Live bytes of each cell. */
  cell_live_bytes: number[];
}

/** Blocks live at the peak. */
export interface PeakBlocks {
  bytes: number;
  count: number;
  bytes_plus_minus?: number;
  count_plus_minus?: number;
}

/** A piece: a part of all memory that belongs to no other piece. */
export interface Piece {
  /** Kind of the piece. */
  kind: PieceKind;
  /** Name of the piece in texts. */
  label: string;
  /** Remark on the amount; empty without one. */
  note: string;
  /** Function of the piece, with its place if all blocks are of one stack. */
  frame: Frame | null;
  /** True if the function is user code. */
  is_own: boolean;
  /** Size of the piece. */
  bytes: number;
  /** Half of the 95 % interval of the size; 0: counted exactly. */
  bytes_plus_minus?: number;
  /** Number of live blocks; null for memory that is in no recorded block. */
  block_count: number | null;
  /** Half of the 95 % interval of the number; 0: counted exactly. */
  block_count_plus_minus?: number;
  /** Number of stacks with these blocks. */
  stack_count: number;
}

/** Kind of a piece. */
export type PieceKind = 'function' | 'inclusive' | 'loading' | 'small' | 'no_stack' | 'kept' | 'runtime' | 'files' | 'shared_memory' | 'thread_stacks' | 'written_data' | 'recorder' | 'unknown';

export interface PlaceAnswer {
  schema: string;
  /** Process of the pages; null without blocks. */
  pid: number | null;
  process_count: number;
  cell_bytes: number;
  runs: PageRun[];
  /** Names of functions; those with a colour come first. */
  owners: string[];
  /** Number of functions with a colour. */
  coloured: number;
  moments: PlaceMoment[];
}

/** Pages at a moment. */
export interface PlaceMoment {
  time_ns: number;
  /** Number of the snapshot, of a recording without events. */
  snapshot: number | null;
  live_bytes: number;
  /** Bytes of pages with live blocks, and those that are in no block. */
  page_bytes: number;
  free_bytes: number;
  /** Bytes of the free ones in pages that are at least half free. */
  half_free_bytes: number;
  /** Resident memory at the last sample before it; null without such a sample. */
  rss_bytes: number | null;
  pins: PlacePin[];
  /** Live bytes of each cell, and the function with most of them: an index in `owners`, -1 for none or another one. */
  cell_live_bytes: number[];
  owner: number[];
}

/** Function whose blocks keep free memory of pages that are at least half free. */
export interface PlacePin {
  /** Index in `owners`. */
  owner: number;
  free_bytes: number;
  block_count: number;
  block_bytes: number;
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

/** Resident memory over time, with one moment in full. */
export interface ResidentAnswer {
  schema: string;
  command: string;
  /** Name of the process. */
  of: string;
  times_ns: (number | null)[];
  names: string[];
  rss_bytes: number[];
  /** Bands, largest at the shown moment first. */
  bands: ResidentBand[];
  /** Index of the moment that is answered in full. */
  shown: number;
  lines: SavedLine[];
  pages: PageCells | null;
  findings: SavedFinding[];
  /** Limits: facts that could not be determined. */
  limits: string[];
}

/** A class over all moments. */
export interface ResidentBand {
  class: string;
  label: string;
  /** Index of the class among all classes, for its colour. */
  place: number;
  /** Resident bytes at each moment. */
  values: number[];
  /** Halves of their 95 % intervals, if they are estimates. */
  plus_minus?: number[];
}

/** Facts of the file that are sent before any query. */
export interface ResidentFacts {
  /** Name of the process. */
  of: string;
  moment_count: number;
}

/** The resident memory of a process. */
export interface RssSeries {
  pid: number | null;
  time_ns: number[];
  rss_bytes: number[];
}

/** Precision of a recording whose numbers are estimates. */
export interface Sampling {
  /** Largest mean distance of two samples, in requested bytes. */
  mean_bytes: number;
  /** Confidence of the intervals, from 0 to 1. */
  confidence: number;
}

/** Texts of a finding. */
export interface SavedFinding {
  /** Statement. */
  sentence: string;
  /** Confidence: low, medium or high. */
  confidence: string;
  /** Evidence. */
  evidence: string[];
}

/** Line of a class. */
export interface SavedLine {
  /** Key of the class. */
  class: string;
  /** Name of the class. */
  label: string;
  /** Resident bytes. */
  bytes: number;
  /** Half of the 95 % interval of `bytes`; 0: counted exactly. */
  bytes_plus_minus: number;
  /** Bytes that other processes have mapped, too. */
  shared_bytes: number;
  /** Text beside the number. */
  note: string;
  /** Parts, largest first; small ones may be missing. */
  parts: SavedPart[];
}

/** Part of a class. */
export interface SavedPart {
  /** Name of the part. */
  name: string;
  /** Resident bytes. */
  bytes: number;
}

/** Facts of a session that a page shows. */
export interface SessionFacts {
  name: string;
  state: string;
  shown_until_ns: number;
  trouble: string | null;
  /** Status as `heapr status --format json` writes it. */
  status: unknown | null;
}

/** Live blocks of a snapshot, or of one of its processes. */
export interface SnapshotBlocks {
  block_count: number;
  block_bytes: number;
  block_count_plus_minus?: number;
  block_bytes_plus_minus?: number;
}

/** Facts of a snapshot that are sent before any query. */
export interface SnapshotFacts {
  node_count: number;
  edge_count: number;
  total_bytes: number;
  exposes_internals: boolean;
  /** Runtime of another language, such as `CPython 3.11.2`; null for V8. */
  runtime: string | null;
  /** Bytes of native memory; null for V8, and for a heap without such memory. */
  native_bytes: number | null;
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
  /** Half of the 95 % interval of `block_bytes`; 0: counted exactly. */
  block_bytes_plus_minus?: number;
  pids: number[];
}

/** A process in a snapshot. */
export interface SnapshotProcess extends SnapshotBlocks {
  pid: number | null;
  name: string;
  rss_bytes: number | null;
}

/** A line with its neighbours. */
export interface Source {
  first_line: number;
  lines: string[];
  is_newer: boolean;
}

export interface SourcedFinding extends Finding {
  source: Source | null;
}

/** Sums as columns. `stack` and `born` are differences to the row before. */
export interface SpanColumns {
  stack: number[];
  born: number[];
  /** Number of spans after `born`; -1: not freed. */
  freed: number[];
  count: number[];
  bytes: number[];
  realloc_count: number[];
  temporary_count: number[];
  temporary_bytes: number[];
}

/** Culled stacks as a tree of frames, the outermost first; parents come before their children. */
export interface SpanNodes {
  /** Index of the caller; -1 for none. */
  parent: number[];
  frame: number[];
}

/** Stacks that allocate. */
export interface SpanStacks {
  id: string[];
  /** Index of the innermost frame in `nodes`; -1 without frames. */
  node: number[];
  /** Index of the innermost frame of user code, from the innermost one; -1 for none. */
  own: number[];
  /** File (a number of a name) and line of that frame; 0 for unknown. Lines of a stack that sums several are those of one. */
  own_file: number[];
  own_line: number[];
  /** Bytes and blocks of the stack at the peak of the recording. */
  peak_bytes: number[];
  peak_count: number[];
}

export interface SpansAnswer {
  schema: string;
  /** Path for a command. */
  path: string;
  /** Ends of the spans; the first span begins at 0. */
  ends_ns: number[];
  names: string[];
  frames: FlameFrame[];
  nodes: SpanNodes;
  stacks: SpanStacks;
  sums: SpanColumns;
}

export interface StackFrame extends Frame {
  id: string;
  culled: boolean;
  source: Source | null;
}

/** Place of a heap in a recording of its process. */
export interface TakenFacts {
  /** Number of the recording in the list of files. */
  file: number;
  /** Process, by the name of the heap's file. */
  pid: number;
  /** Time at which the heap's file was written; the recording's end, if that was earlier. */
  time_ns: number;
}

/** A snapshot of a series. */
export interface TakenSnapshot extends LiveBlocks {
  file: number;
  number: number;
  name: string;
  time_ns: number;
  unix_ns: number;
  trigger: string;
  processes: string[];
}

export interface Thread {
  tid: number;
  name: string;
  pid: number | null;
}

export interface TimelineAnswer extends TimelineIntervals {
  schema: string;
  /** Reason why the course is missing. */
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
  /** Sum of the resident bytes, for the value `resident`. */
  resident_bytes: number[];
  rest: number[];
  rest_plus_minus?: number[];
  rss: RssSeries[];
  markers: Marker[];
  snapshots: SnapshotMark[];
  peak: TimelinePeak | null;
}

/** Halves of the 95 % intervals of the curves by bin, if they are estimates. */
export interface TimelineIntervals {
  live_bytes_plus_minus?: number[];
  live_count_plus_minus?: number[];
  most_bytes_plus_minus?: number[];
  alloc_bytes_plus_minus?: number[];
  alloc_count_plus_minus?: number[];
  free_count_plus_minus?: number[];
}

/** Largest amount of live memory. */
export interface TimelinePeak extends PeakBlocks {
  time_ns: number;
}

export interface TimelineSeries {
  name: string;
  filter: unknown;
  id: string | null;
  values: number[];
  /** Halves of the 95 % intervals of `values`, if they are estimates. */
  values_plus_minus?: number[];
}

/** All blocks of an answer. */
export interface TotalBlocks {
  total_bytes: number;
  total_count: number;
  total_bytes_plus_minus?: number;
  total_count_plus_minus?: number;
}

/** Totals of the whole or of a heap; null if unknown. */
export interface Totals extends TotalIntervals {
  alloc_count: number | null;
  alloc_bytes: number | null;
  free_count: number | null;
  /** Half of the 95 % interval of the number of frees; 0 if they were counted. */
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

/** Facts of a trace that are sent before any query. */
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
  /** Languages with frames in the stacks: the prefix of a frame's name, and the language's name. */
  languages: string[][];
  /** Default for the frames shown in such stacks: `mixed`, `own` or `native`. */
  lang_frames: string;
  /** Statements on the explained parts of the largest process's own memory. */
  own_memory: string[];
  /** Number of samples of resident memory. */
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
  /** Path of the program's file. Its name may differ from the process's name if it was started through a link. */
  executable: string;
  command_line: string[];
  start_ns: number;
  end_ns: number | null;
  exit_code: number | null;
  signal: number | null;
}

/** The system that the trace was recorded on. */
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

/** Answer with a treemap. */
export interface Treemap<I> {
  schema: string;
  command: string | null;
  total: number;
  /** Half of the 95 % interval of `total`; 0: counted exactly. */
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

/** Allocated blocks of a type. */
export interface TypeBlocks {
  count: number;
  bytes: number;
  count_plus_minus?: number;
  bytes_plus_minus?: number;
}

export interface TypeSum extends TypeBlocks {
  type: string;
  command: string;
}

export interface UnionFrame {
  id: string;
  symbol: number;
  module: number;
  offset: number;
}

export interface WhereAnswer extends WhereItIs {
  schema: string;
  /** The equal command; null if only some processes are chosen. */
  command: string | null;
}

/** Breakdown of a recording's memory at a moment. The pieces add up to `whole_bytes`. */
export interface WhereItIs {
  /** Time of the live blocks, from the recording's start. */
  time_ns: number;
  /** Resident bytes; null if the file has no reading of them. */
  rss_bytes: number | null;
  /** Time of the reading of resident memory that is farthest from the moment. */
  rss_time_ns: number | null;
  /** Bytes of all live blocks. */
  live_bytes: number;
  /** Half of the 95 % interval of the bytes; 0: counted exactly. */
  live_bytes_plus_minus?: number;
  /** Number of all live blocks. */
  live_count: number;
  /** Half of the 95 % interval of the number; 0: counted exactly. */
  live_count_plus_minus?: number;
  /** Live bytes beyond the resident memory without a file: blocks that were never written, that are swapped out, or that were made since the reading. */
  beyond_bytes: number;
  /** Sum of the pieces: resident bytes, and those beyond. */
  whole_bytes: number;
  /** Pieces: live blocks first, then other memory; in each part the largest first. */
  pieces: Piece[];
  /** Facts that could not be determined. */
  not_told: string[];
}
