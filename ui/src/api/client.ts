/** Requests to the server, with errors as readable values. */
import { ApiError } from './api-error';
import { askTogether, isBatched } from './batch';
import type { Files } from './file-types';
import { RecordedAnswers } from './recorded-answers';
import { answerOfSpans, sumsOf } from './span-answers';
import type { SpanSums } from './span-sums';

/** Answers recorded in a page of `heapr view --static`, by request line. */
let recorded: RecordedAnswers | null = null;

/** Returns a text that is equal for equal requests. */
export function requestKey(path: string, body?: unknown): string {
  return body === undefined ? path : `${path} ${JSON.stringify(body)}`;
}

/** Uses the answers that are embedded in the page, if any. */
export async function useRecordedAnswers(): Promise<boolean> {
  const element = document.getElementById('heapr-answers');
  if (!element) return false;
  const text = element.textContent ?? '{}';
  const json = element.dataset['encoding'] === 'gzip+base64' ? await unpacked(text) : text;
  recorded = RecordedAnswers.ofText(json);
  element.remove();
  return true;
}

/** Decodes text from base64 of gzip. */
async function unpacked(base64: string): Promise<string> {
  const letters = atob(base64.trim());
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = letters.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}

/** Whether the page has no server. */
export function isStatic(): boolean {
  return recorded !== null;
}

/** Returns the sums by time of a page without a server, if it has them. */
export function spanSums(file: number): SpanSums | null {
  const answers = recorded;
  return answers === null ? null : sumsOf(file, (path, body) => answers.find(path, body));
}

/** Returns the filters whose answers are in a page without a server. */
export function recordedFilters(): NonNullable<NonNullable<Files['static']>['choices']> {
  return (recorded?.find('/api/files', undefined) as Files | undefined)?.static?.choices ?? [];
}

/** Returns the first address of a page without a server. */
export function recordedAddress(): string {
  return (recorded?.find('/api/files', undefined) as Files | undefined)?.static?.address ?? '';
}

/**
 * Sends `POST` with a body, `GET` without one. Throws `ApiError`, or `AbortError` when `signal` was
 * raised.
 */
export async function request<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  if (recorded) return recordedAnswer<T>(recorded, path, body);
  if (isBatched(path)) return (await askTogether(requestAlone, path, body, signal)) as T;
  return (await requestAlone(path, body, signal)) as T;
}

async function requestAlone(path: string, body?: unknown, signal?: AbortSignal): Promise<unknown> {
  return (await send(path, body, signal)).json();
}

/** Sends a request whose answer is a file. */
export async function requestFile(path: string, body: unknown): Promise<Blob> {
  if (recorded) throw new ApiError('this page has no server behind it: open the file with heapr view', 0);
  return (await send(path, body)).blob();
}

async function send(path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const init: RequestInit = { credentials: 'same-origin' };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.method = 'POST';
    init.headers = { 'Content-Type': 'application/json' };
    init.body = JSON.stringify(body);
  }
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError('heapr view does not answer: it was stopped, or the connection was cut', 0);
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

async function errorOf(response: Response): Promise<ApiError> {
  if (response.status === 401) {
    return new ApiError('this page may not read the data: open the address that heapr view printed, with its token', 401);
  }
  try {
    const said = (await response.json()) as { error?: string; offset?: number | null; field?: string | null };
    return new ApiError(said.error ?? response.statusText, response.status, said.offset ?? null, said.field ?? null);
  } catch {
    return new ApiError(`${response.status} ${response.statusText}`, response.status);
  }
}

/** Requests that sums by time may answer. */
const SPANNED = new Set(['/api/report', '/api/functions', '/api/flame', '/api/frame', '/api/timeline']);

function ofSums(sums: SpanSums | null, path: string, body: unknown): unknown {
  return sums === null ? undefined : answerOfSpans(sums, path, body);
}

function recordedAnswer<T>(answers: RecordedAnswers, path: string, body: unknown): T {
  const sums = () => spanSums((body as { file?: number } | undefined)?.file ?? 0);
  const isSpanned = SPANNED.has(path);
  // Sums have all rows. Where they do not answer, the first rows of a long table are what there is.
  const answer = answers.find(path, body, isSpanned) ?? (isSpanned ? (ofSums(sums(), path, body) ?? answers.find(path, body)) : undefined);
  if (answer === undefined) {
    throw new ApiError('this is not in the page: it was written by heapr view --static; open the file itself with heapr view', 0);
  }
  return answer as T;
}
