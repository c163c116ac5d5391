/** Answers on a trace in the HTTP API, and the filter that they are asked with. */
import type * as answers from './answers';

export type { Bucket as HistogramBucket, DiffAnswer, DiffGroup, Frame, FrameAnswer, FrameGroup, FunctionRow, FunctionsAnswer, Group, Heap as HeapTotals, Histogram, Leak, LeaksAnswer, Own as OwnFrameOfStack, ReportAnswer, StackFrame, TypeSum } from './answers';

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
  innermost_frames?: string[];
  cull_frames?: string[];
  no_default_cull?: boolean;
  hide_known?: boolean;
  /** Which frames of stacks with frames of a language are shown; it chooses no allocations. */
  lang_frames?: 'mixed' | 'own' | 'native';
  /** What a native snapshot holds: its number. */
  snapshot?: string;
}

export interface TimelineSeries extends Omit<answers.TimelineSeries, 'filter'> {
  filter: Filter | null;
}

export interface TimelineAnswer extends Omit<answers.TimelineAnswer, 'series'> {
  series: TimelineSeries[];
}

/** Of one trace, or of two compared: their nodes have other amounts. */
export interface FlameAnswer extends Omit<answers.FlameAnswer, 'schema' | 'command' | 'frames' | 'nodes'> {
  command: string | null;
  frames: (answers.FlameFrame & { line?: number | null; inlined?: boolean })[];
  nodes: Pick<answers.FlameNodes, 'id' | 'parent' | 'frame'> & Partial<answers.FlameNodes & answers.DiffFlameNodes>;
}
