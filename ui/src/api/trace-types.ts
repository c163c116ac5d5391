/** Answers on a trace in the HTTP API, and the filter of their requests. */
import type * as answers from './answers';

export type { Bucket as HistogramBucket, DiffAnswer, DiffGroup, Frame, FrameAnswer, FrameGroup, FunctionRow, FunctionsAnswer, Group, Heap as HeapTotals, Histogram, Leak, LeaksAnswer, Own as OwnFrameOfStack, ReportAnswer, StackFrame, TypeSum } from './answers';

/** Filter: fields are the long options of `heapr report`, values are its values as text. */
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
  innermost_frames?: string[];
  cull_frames?: string[];
  no_default_cull?: boolean;
  hide_known?: boolean;
  /** Frames shown of stacks with language frames; does not select allocations. */
  lang_frames?: 'mixed' | 'own' | 'native';
  /** Number of a native snapshot whose blocks are selected. */
  snapshot?: string;
}

export interface TimelineSeries extends Omit<answers.TimelineSeries, 'filter'> {
  filter: Filter | null;
}

export interface TimelineAnswer extends Omit<answers.TimelineAnswer, 'series'> {
  series: TimelineSeries[];
}

/** Flame graph of one trace, or of two compared, whose nodes have other amounts. */
export interface FlameAnswer extends Omit<answers.FlameAnswer, 'schema' | 'command' | 'frames' | 'nodes'> {
  command: string | null;
  frames: (answers.FlameFrame & { line?: number | null; inlined?: boolean })[];
  nodes: Pick<answers.FlameNodes, 'id' | 'parent' | 'frame'> & Partial<answers.FlameNodes & answers.DiffFlameNodes>;
}
