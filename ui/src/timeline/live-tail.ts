/** Time of a running session behind its last event. */
import type { OpenFile } from '../api/types';

/** Factor between two ends that are asked for: a still session then asks for few of them. */
const STEP = 1.25;

export interface TimelineEnd {
  /** End of the axis: now, of a session that records. */
  nowNs: number;
  /** End of what is asked for; behind the end of what was read only if no event came since. */
  askedNs: number;
}

/** Returns the end of a file's timeline. */
export function timelineEnd(file: OpenFile): TimelineEnd {
  const readNs = Math.max(1, file.trace?.duration_ns ?? 1);
  const isRunning = file.session?.state === 'recording' || file.session?.state === 'full';
  const status = isRunning ? file.session?.status : null;
  if (!status || status.duration_ns <= readNs) return { nowNs: readNs, askedNs: readNs };
  if (!isQuiet(file)) return { nowNs: status.duration_ns, askedNs: readNs };
  let askedNs = readNs;
  while (askedNs < status.duration_ns) askedNs *= STEP;
  return { nowNs: status.duration_ns, askedNs: Math.ceil(askedNs) };
}

/** Whether a running session has no event that was not read. What is live is so until now. */
export function isQuiet(file: OpenFile): boolean {
  return file.session?.state === 'recording' && file.session.status?.event_count === file.trace?.event_count;
}
