/** Findings, in the form of the server and of `heapr explain --format json`. */
import type * as answers from './answers';

export type { Kind as FindingKind, OwnFrame } from './answers';

export interface Finding extends Omit<answers.SourcedFinding, 'confidence'> {
  confidence: 'high' | 'medium' | 'low';
}

export interface FindingsAnswer {
  command: string | null;
  verdict: string;
  /** Time at which the program stopped working and began to free everything. */
  work_end_ns?: number | null;
  /** Time up to which a recording that goes on was looked at. */
  until_ns?: number | null;
  findings: Finding[];
}
