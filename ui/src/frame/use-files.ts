/** The open files: asked again while something goes on, and now and then in case a file changes. */
import { useEffect, useState } from 'preact/hooks';
import { isStatic, request } from '../api/client';
import type { Files, OpenFile } from '../api/types';

const BUSY_MS = 200;
const CALM_MS = 2000;

export interface KnownFiles {
  files: OpenFile[] | null;
  version: string;
  error: string;
  askAgain: () => void;
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
      let isBusy = false;
      try {
        const files = await request<Files>('/api/files', undefined, abort.signal);
        const text = JSON.stringify(files);
        if (text !== last) setKnown(files);
        last = text;
        setError('');
        isBusy = files.files.some((file) => file.state === 'opening' || file.tasks.some((task) => task.done < task.all));
      } catch (failure) {
        if (abort.signal.aborted) return;
        setError(failure instanceof Error ? failure.message : String(failure));
      }
      if (!isStatic() && !abort.signal.aborted) timer = window.setTimeout(() => void ask(), isBusy ? BUSY_MS : CALM_MS);
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [round]);
  return { files: known?.files ?? null, version: known?.heapr_version ?? '', error, askAgain: () => setRound((count) => count + 1) };
}
