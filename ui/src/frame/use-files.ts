/**
 * Hook for the open files: requested often while work goes on, and now and then in case a file
 * changes.
 */
import { useEffect, useState } from 'preact/hooks';
import { setCalm } from '../api/batch';
import { isStatic, request } from '../api/client';
import type { Files, OpenFile } from '../api/types';

/** Interval while a file is opened, for which the first picture waits. */
const OPENING_MS = 60;
/** Interval while events are read. */
const BUSY_MS = 250;
/** Interval while a session records, whose file is read about once a second. */
const LIVE_MS = 500;
const CALM_MS = 2000;

export interface KnownFiles {
  files: OpenFile[] | null;
  version: string;
  error: string;
  askAgain: () => void;
  /** Facts of a page without a server. */
  static: Files['static'] | null;
}

export function useFiles(): KnownFiles {
  const [known, setKnown] = useState<Files | null>(null);
  const [error, setError] = useState('');
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    let last = '';
    const ask = async () => {
      let waitMs = CALM_MS;
      try {
        const files = await request<Files>('/api/files', undefined, abort.signal);
        setCalm(files.files.every((file) => file.state !== 'opening' && file.tasks.length === 0));
        const text = JSON.stringify(files);
        if (text !== last) setKnown(files);
        last = text;
        setError('');
        if (files.files.some((file) => file.state === 'opening')) waitMs = OPENING_MS;
        else if (files.files.some((file) => file.tasks.some((task) => task.done < task.all))) waitMs = BUSY_MS;
        else if (files.files.some((file) => file.session?.state === 'recording')) waitMs = LIVE_MS;
      } catch (failure) {
        if (abort.signal.aborted) return;
        setError(failure instanceof Error ? failure.message : String(failure));
      }
      if (!isStatic() && !abort.signal.aborted) timer = window.setTimeout(() => void ask(), waitMs);
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [round]);
  return { files: known?.files ?? null, version: known?.heapr_version ?? '', error, askAgain: () => setRound((count) => count + 1), static: known?.static ?? null };
}
