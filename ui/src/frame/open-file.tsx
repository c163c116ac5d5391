/**
 * Opens a further file, dropped on the page or chosen. It is sent in pieces to the server, which
 * opens it.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { isStatic, request } from '../api/client';
import { go } from '../address/use-address';

/** Bytes of a piece: as base64 it must fit into a request. */
const PIECE_BYTES = 384 << 10;

function base64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

async function send(file: File, tell: (part: number) => void): Promise<number> {
  let upload: number | null = null;
  for (let at = 0; ; at += PIECE_BYTES) {
    const end = Math.min(file.size, at + PIECE_BYTES);
    const data = base64(new Uint8Array(await file.slice(at, end).arrayBuffer()));
    const answer: { upload: number; file: number | null } = await request('/api/drop', { upload, name: file.name, data, is_last: end === file.size });
    upload = answer.upload;
    tell(file.size === 0 ? 1 : end / file.size);
    if (answer.file !== null) return answer.file;
  }
}

export function OpenFile({ askAgain }: { askAgain: () => void }) {
  const [said, setSaid] = useState('');
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const open = async (files: FileList | null | undefined) => {
    for (const file of files ?? []) {
      try {
        const number = await send(file, (part) => setSaid(`${file.name}: ${Math.round(part * 100)} %`));
        askAgain();
        go({ file: number, view: '', select: '', object: -1 });
        setSaid('');
      } catch (failure) {
        setSaid(failure instanceof Error ? failure.message : String(failure));
      }
    }
  };
  const newest = useRef(open);
  newest.current = open;
  useEffect(() => {
    if (isStatic()) return;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      void newest.current(event.dataTransfer?.files);
    };
    document.addEventListener('dragover', over);
    document.addEventListener('dragleave', leave);
    document.addEventListener('drop', drop);
    return () => {
      document.removeEventListener('dragover', over);
      document.removeEventListener('dragleave', leave);
      document.removeEventListener('drop', drop);
    };
  }, []);
  if (isStatic()) return null;
  return (
    <>
      <span class="quiet" role="status">{said}</span>
      <button type="button" class="button" title="A further trace or snapshot; files may also be dropped on the page" onClick={() => input.current?.click()}>Open…</button>
      <input ref={input} type="file" multiple hidden aria-label="Files to open" onChange={(event) => { void open(event.currentTarget.files); event.currentTarget.value = ''; }} />
      {isOver && <div class="drop-place" role="status">Drop traces or snapshots here</div>}
    </>
  );
}
