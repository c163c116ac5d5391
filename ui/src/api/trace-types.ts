/** Answers on a trace in the HTTP API, and the filter that they are asked with. */
import type { Marker, Totals } from './file-types';
import type { Amounts } from './metrics';

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

/** The program's own frame of a stack, and its place among all frames. */
export interface OwnFrameOfStack extends Frame {
  place: number;
}

export interface TimelineSeries {
  name: string;
  filter: Filter | null;
  id: string;
  values: number[];
}

export interface TimelineAnswer {
  /** Why there is no course; only markers, snapshots and RSS are known then. */
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
  rest: number[];
  rss: { pid: number; time_ns: number[]; rss_bytes: number[] }[];
  markers: Marker[];
  snapshots: { time_ns: number; number?: number; name?: string; trigger?: string; block_bytes?: number; block_count?: number; pids?: number[] }[];
  peak: { time_ns: number; bytes: number; count: number } | null;
}

export interface Group extends Amounts {
  id: string;
  frames: Frame[];
  frame_count: number;
  own?: OwnFrameOfStack;
  thread?: { tid: number; name: string; pid: number | null } | null;
  oldest_ns?: number | null;
  newest_ns?: number | null;
  mean_age_ns?: number | null;
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
  all: Amounts;
  matched: Amounts;
  offset: number;
  groups: Group[];
}

/** A function with all that it calls, and what is its own. */
export interface FunctionRow {
  id: string;
  frame: Frame;
  is_own: boolean;
  inclusive: Amounts;
  own: Amounts;
}

export interface FunctionsAnswer {
  command: string | null;
  totals: Totals;
  function_count: number;
  match_count: number;
  functions: FunctionRow[];
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

export interface FrameGroup extends Amounts {
  id: string;
  frame: Frame;
}

export interface FrameAnswer {
  command: string | null;
  frame: Frame;
  inclusive: Amounts;
  self: Amounts;
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
  before: Amounts;
  after: Amounts;
  delta: number;
}

export interface DiffAnswer {
  command: string | null;
  before: Amounts;
  after: Amounts;
  group_count: number;
  match_count: number;
  groups: DiffGroup[];
}

/** Answers that carry rows of one kind. */

/** A row of a native snapshot: frames are `module!symbol`, innermost first. */
