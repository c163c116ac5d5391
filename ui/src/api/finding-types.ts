/** What stands out, as the server and `heapr explain --format json` say it. */
import type * as answers from './answers';

export type { Kind as FindingKind, OwnFrame } from './answers';

export interface Finding extends Omit<answers.SourcedFinding, 'confidence'> {
  confidence: 'high' | 'medium' | 'low';
}

export interface FindingsAnswer {
  command: string | null;
  verdict: string;
  /** When the program stopped working and began to free all. */
  work_end_ns?: number | null;
  findings: Finding[];
}
