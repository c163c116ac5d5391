/** Hook for a request: returns the answer, the previous answer during loading, or the error. */
import { useEffect, useState } from 'preact/hooks';
import { ApiError } from './api-error';
import { request, requestKey } from './client';

export interface Answer<T> {
  /** Newest answer; that of the previous request while `isLoading`. */
  data: T | null;
  error: ApiError | null;
  isLoading: boolean;
}

/** Largest number of answers saved for Back. */
const KEPT = 40;
const kept = new Map<string, unknown>();

/** Clears the saved answers, because the files behind them changed. */
export function forgetAnswers(): void {
  kept.clear();
}

function keep(key: string, answer: unknown): void {
  // An older answer of a running session is not requested again, so it is removed.
  const question = key.slice(key.indexOf(' '));
  for (const other of kept.keys()) if (other.endsWith(question) && other.slice(other.indexOf(' ')) === question) kept.delete(other);
  kept.set(key, answer);
  for (const oldest of kept.keys()) {
    if (kept.size <= KEPT) break;
    kept.delete(oldest);
  }
}

/**
 * Sends the request again whenever path or body change, and cancels a superseded one. A null `body`
 * sends no request. `generation` increases when the same request has a newer answer (a live
 * session).
 */
export function useAnswer<T>(path: string, body: object | null, generation = 0): Answer<T> {
  const key = body === null ? null : `${generation} ${requestKey(path, body)}`;
  const [state, setState] = useState<Answer<T> & { key: string | null }>({ data: null, error: null, isLoading: key !== null, key: null });
  useEffect(() => {
    if (key === null || body === null) {
      setState({ data: null, error: null, isLoading: false, key });
      return;
    }
    const known = kept.get(key) as T | undefined;
    if (known !== undefined) {
      setState({ data: known, error: null, isLoading: false, key });
      return;
    }
    const abort = new AbortController();
    setState((old) => ({ ...old, error: null, isLoading: true, key }));
    void answer<T>(path, body, abort.signal)
      .then((data) => {
        keep(key, data);
        if (!abort.signal.aborted) setState({ data, error: null, isLoading: false, key });
      })
      .catch((error: unknown) => {
        if (abort.signal.aborted) return;
        const shown = error instanceof ApiError ? error : new ApiError(String(error), 0);
        setState({ data: null, error: shown, isLoading: false, key });
      });
    return () => abort.abort();
  }, [path, key]);
  return state.key === key ? state : { ...state, error: null, isLoading: key !== null };
}

/** Sends a request, and repeats it while the file is still being opened (409). */
export async function answer<T>(path: string, body: object, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await request<T>(path, body, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      await new Promise((resolve) => setTimeout(resolve, 60));
      if (signal.aborted) throw error;
    }
  }
}
