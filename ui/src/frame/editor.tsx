/** Source locations as links that open an editor. */
import { useEffect, useState } from 'preact/hooks';

const KEY = 'heapr-editor';
/** Editors and their addresses, in which `{file}` and `{line}` stand for the location. */
const EDITORS: [string, string][] = [
  ['no editor', ''], ['VS Code', 'vscode://file{file}:{line}'], ['VSCodium', 'vscodium://file{file}:{line}'], ['Cursor', 'cursor://file{file}:{line}'], ['Zed', 'zed://file{file}:{line}'],
  ['JetBrains', 'idea://open?file={file}&line={line}'], ['Sublime Text', 'subl://open?url=file://{file}&line={line}'], ['Emacs', 'emacs://open?url=file://{file}&line={line}'],
];
const listeners = new Set<() => void>();

function chosen(): string {
  try {
    return localStorage.getItem(KEY) ?? '';
  } catch {
    return '';
  }
}

/** Returns the address that opens a location; empty if no editor was chosen. */
export function editorAddress(template: string, file: string, line: number | null): string {
  // An address that runs code is refused, whatever was stored.
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(template) || /^(javascript|data|vbscript|blob):/i.test(template)) return '';
  return template.replaceAll('{file}', file.split('/').map(encodeURIComponent).join('/')).replaceAll('{line}', String(line ?? 1));
}

function useEditor(): string {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = () => redraw((count) => count + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return chosen();
}

/** Source location such as `/src/a.cc:12`, as a link if an editor was chosen. */
export function SourcePlace({ file, line, text }: { file: string; line: number | null; text?: string }) {
  const address = editorAddress(useEditor(), file, line);
  const shown = text ?? `${file}${line === null ? '' : `:${line}`}`;
  return address === '' ? <>{shown}</> : <a class="link" href={address} title={`Open ${file} in the editor`}>{shown}</a>;
}

export function EditorChoice() {
  const now = useEditor();
  const choose = (template: string) => {
    try {
      localStorage.setItem(KEY, template);
    } catch {
      // The browser stores nothing.
    }
    for (const listener of [...listeners]) listener();
  };
  return (
    <select aria-label="Editor that places open in" title="Places in sources become links that open this editor" value={now} onChange={(event) => choose(event.currentTarget.value)}>
      {EDITORS.map(([title, template]) => <option key={title} value={template}>{title}</option>)}
    </select>
  );
}
