/** Keys that work everywhere, and the list of all keys. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { emptyFilter } from '../address/address';
import { currentAddress, go } from '../address/use-address';
import type { OpenFile } from '../api/types';

interface ShortcutActions {
  files: OpenFile[];
  nextTheme: () => void;
  share: () => void;
}

const KEYS: [string, [string, string][]][] = [
  ['Everywhere', [
    ['1 … 4', 'the tab of that number (of a snapshot: 1 … 9)'], ['v, V', 'the next, previous view of the tab'], ['[ and ]', 'previous, next file'], ['/', 'search in the view'], ['n, N', 'next, previous match in a flame graph'], ['f', 'add a filter'], ['x', 'remove all filters'],
    ['p', 'what was live at the peak'], ['c', 'copy the command line'], ['s', 'copy the address of what is shown'], ['t', 'light, dark, as the system'],
    ['h', 'hold what is shown while a session records'], ['g', 'go to the timeline'], ['m', 'go to the main table or picture'], ['Alt ← / →', 'back, forward'], ['?', 'this list'],
  ]],
  ['Timeline', [
    ['drag', 'brush a range'], ['wheel, + −', 'zoom, down to a microsecond'], ['← →, Shift drag', 'move'], ['Enter', 'brush what is seen'], ['Escape', 'remove the range'], ['0, double click', 'see the whole'],
  ]],
  ['Flame graph', [
    ['← → ↑ ↓', 'walk'], ['Enter, double click', 'zoom in (again: out)'], ['Backspace', 'zoom to the caller'], ['Escape', 'the whole'], ['Ctrl wheel, + −', 'zoom'], ['drag, wheel', 'move'],
  ]],
  ['Tables', [
    ['↑ ↓ PgUp PgDn Home End', 'move'], ['Shift', 'select several rows'], ['→ ←, Space', 'open, close a row'], ['Enter', 'open what it stands for'], ['Ctrl C', 'copy the selected rows as text'],
  ]],
];

export function useShortcuts(actions: ShortcutActions): { isOpen: boolean; toggle: () => void } {
  const [isOpen, setOpen] = useState(false);
  const now = useRef(actions);
  now.current = actions;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
      if (event.key === 'Escape') {
        setOpen(false);
        return;
      }
      const digit = event.key === '0' ? 10 : /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
      const click = (selector: string) => document.querySelector<HTMLElement>(selector)?.click();
      const focus = (selector: string) => document.querySelector<HTMLElement>(selector)?.focus();
      const step = (by: number) => {
        const tabs = [...document.querySelectorAll<HTMLElement>('.file-tab')];
        const at = tabs.findIndex((tab) => tab.classList.contains('is-on'));
        tabs[(at + by + tabs.length) % Math.max(1, tabs.length)]?.click();
      };
      const stepView = (by: number) => {
        const tabs = [...document.querySelectorAll<HTMLElement>('.tabs [role=tab]')];
        const at = tabs.findIndex((tab) => tab.getAttribute('aria-selected') === 'true');
        tabs[(at + by + tabs.length) % Math.max(1, tabs.length)]?.click();
      };
      const keys: Record<string, () => void> = {
        '?': () => setOpen((open) => !open),
        '/': () => focus('.view input[type=search]'),
        '[': () => step(-1),
        ']': () => step(1),
        f: () => click('.filter-add > button'),
        x: () => go({ ...emptyFilter() }),
        p: () => go(currentAddress().at === 'peak' ? { at: '' } : { at: 'peak', range: [], snapshot: '' }),
        c: () => click('.command-copy'),
        s: () => now.current.share(),
        t: () => now.current.nextTheme(),
        h: () => click('#hold'),
        n: () => click('#match-next'),
        N: () => click('#match-before'),
        g: () => focus('.timeline canvas'),
        m: () => focus('.view .table, .view canvas'),
        v: () => stepView(1),
        V: () => stepView(-1),
      };
      if (digit > 0) click(`${document.querySelector('.tab-groups') ? '.tab-groups' : '.tabs'} [role=tab]:nth-of-type(${digit})`);
      else if (keys[event.key]) keys[event.key]?.();
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
  return { isOpen, toggle: () => setOpen((open) => !open) };
}

/** List of all keys, opened by `?`. */
export function Shortcuts({ close }: { close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  return (
    <dialog ref={box} class="shortcuts" aria-label="Keyboard shortcuts" onClose={close} onClick={(event) => event.target === box.current && close()}>
      <h2>Keyboard</h2>
      <div class="shortcut-groups">
        {KEYS.map(([title, keys]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>{keys.map(([key, what]) => <div key={key}><dt>{key}</dt><dd>{what}</dd></div>)}</dl>
          </section>
        ))}
      </div>
      <button type="button" class="button" onClick={close}>Close</button>
    </dialog>
  );
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button'].includes(target.type);
  return target.tagName === 'TEXTAREA' || target.tagName === 'SELECT' || target.isContentEditable;
}
