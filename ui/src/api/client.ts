/** Requests to the server: one function, errors as values that a person can read. */

/** What the server said instead of an answer. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly offset: number | null = null,
    readonly field: string | null = null,
  ) {
    super(message);
  }
}

/** Answers recorded beforehand, in a page that `heapr view --static` wrote: request line to answer. */
let recorded: Map<string, unknown> | null = null;

/** The key under which a static page holds the answer to a request. */
export function requestKey(path: string, body?: unknown): string {
  return body === undefined ? path : `${path} ${JSON.stringify(body)}`;
}

/** Uses the answers that are embedded in the page, if there are any. */
export function useRecordedAnswers(): boolean {
  const element = document.getElementById('heapr-answers');
  if (!element) return false;
  recorded = new Map(Object.entries(JSON.parse(element.textContent ?? '{}') as Record<string, unknown>));
  return true;
}

/** True in a page without a server. */
export function isStatic(): boolean {
  return recorded !== null;
}

/** `POST` with a body, `GET` without one. Throws `ApiError`, or `AbortError` when `signal` was raised. */
export async function request<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  if (recorded) return recordedAnswer<T>(recorded, path, body);
  const response = await send(path, body, signal);
  return (await response.json()) as T;
}

/** As `request`, for an answer that is a file. */
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

function recordedAnswer<T>(answers: Map<string, unknown>, path: string, body: unknown): T {
  const answer = answers.get(requestKey(path, body));
  if (answer === undefined) {
    throw new ApiError('this is not in the page: it was written by heapr view --static; open the file itself with heapr view', 0);
  }
  return answer as T;
}
