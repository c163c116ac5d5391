/**
 * Batches the requests of a trace's panels: a change of the filter is one request to the server and
 * one pass over the events.
 *
 *   timeline ─┐
 *   table    ─┼─ the same turn of the event loop ──> POST /api/panels ──> each gets its own answer
 *   pane     ─┘
 *
 * The answers of a batch come together. While a file is being read, this would delay answers that
 * need no events. Requests are therefore sent one by one until the server is calm.
 */
import { ApiError } from './api-error';

/** Requests that a batch may hold: queries on a trace with similar cost. */
const PANELS = new Set(['report', 'timeline', 'flame', 'histograms', 'types', 'leaks', 'frame', 'stack', 'functions']);
/** Most requests in a batch of the server. */
const REQUESTS_MAX = 32;

interface Waiting {
  path: string;
  body: unknown;
  signal: AbortSignal | undefined;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}
interface PanelsAnswer {
  answers: { status: number; answer: { error?: string; offset?: number | null; field?: string | null } }[];
}
/** Sends one request and reads its answer. */
export type Ask = (path: string, body: unknown, signal?: AbortSignal) => Promise<unknown>;

let isCalm = false;
let waiting: Waiting[] = [];

/** Sets whether the server is calm, which means that it reads no file any more. */
export function setCalm(calm: boolean): void {
  isCalm = calm;
}

/** Whether a request may join a batch. */
export function isBatched(path: string): boolean {
  return isCalm && PANELS.has(path.replace(/^\/api\//, ''));
}

/** Sends a request together with all others of this turn of the event loop. */
export function askTogether(ask: Ask, path: string, body: unknown, signal?: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(aborted());
      return;
    }
    waiting.push({ path, body, signal, resolve, reject });
    signal?.addEventListener('abort', () => reject(aborted()), { once: true });
    if (waiting.length === 1) setTimeout(() => send(ask), 0);
    else if (waiting.length === REQUESTS_MAX) send(ask);
  });
}

function aborted(): DOMException {
  return new DOMException('superseded', 'AbortError');
}

function send(ask: Ask): void {
  const sent = waiting.filter(({ signal }) => !signal?.aborted);
  waiting = [];
  const [only] = sent;
  if (!only) return;
  // Aborts the batch when all its answers have become unwanted.
  const abort = new AbortController();
  const look = () => {
    if (sent.every(({ signal }) => signal?.aborted)) abort.abort();
  };
  sent.forEach(({ signal }) => signal?.addEventListener('abort', look, { once: true }));
  if (sent.length === 1) {
    ask(only.path, only.body, abort.signal).then(only.resolve, only.reject);
    return;
  }
  const requests = sent.map(({ path, body }) => ({ path: path.replace(/^\/api\//, ''), body }));
  ask('/api/panels', { requests }, abort.signal).then(
    (all) => {
      const { answers } = all as PanelsAnswer;
      sent.forEach(({ resolve, reject }, at) => {
        const one = answers[at];
        if (!one) reject(new ApiError('heapr view left a request unanswered', 0));
        else if (one.status === 200) resolve(one.answer);
        else reject(new ApiError(one.answer.error ?? String(one.status), one.status, one.answer.offset ?? null, one.answer.field ?? null));
      });
    },
    (error: unknown) => sent.forEach(({ reject }) => reject(error)),
  );
}
