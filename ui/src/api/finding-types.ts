/** What stands out, as the server and `heapr explain --format json` say it. */
import type { Filter, StackFrame } from './trace-types';

export type FindingKind = 'growth' | 'peak' | 'churn' | 'idle' | 'resident' | 'overhead' | 'duplicates' | 'frees' | 'unseen';

export interface OwnFrame {
  module: string | null;
  symbol: string | null;
  file: string | null;
  line: number | null;
}

export interface Finding {
  kind: FindingKind;
  sentence: string;
  confidence: 'high' | 'medium' | 'low';
  own_frame: OwnFrame | null;
  bytes: number;
  left: boolean;
  evidence: string[];
  command: string;
  /** Which allocations it is about: fields are the options of `heapr report`. */
  chosen?: Pick<Filter, 'at' | 'temporary' | 'require_frames'> & { sort?: string };
  /** Moments in ns, and what the own frame held. */
  curve?: [number, number][];
  source: StackFrame['source'];
}

export interface FindingsAnswer {
  command: string | null;
  verdict: string;
  findings: Finding[];
}
