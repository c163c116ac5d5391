/** Notes as text in the page's address. */
import { parseTimeNs } from '../format';

interface Note {
  /** Moment in ns; null for the whole recording. */
  atNs: number | null;
  text: string;
}

/** Parses `1200ms text`, or text alone. */
export function noteOf(words: string): Note {
  const [, time = '', text = ''] = /^(\d[\d.]*(?:ns|us|ms|s)) (.+)$/s.exec(words) ?? [];
  const atNs = time === '' ? null : parseTimeNs(time);
  return atNs === null ? { atNs: null, text: words } : { atNs, text };
}
