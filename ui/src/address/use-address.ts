/** Address as the page's only state that outlives a component. */
import { useEffect, useState } from 'preact/hooks';
import { type Address, parseAddress, writeAddress } from './address';

let current: Address = parseAddress(location.hash);
const listeners = new Set<() => void>();

function tell(): void {
  for (const listener of [...listeners]) listener();
}

window.addEventListener('popstate', () => {
  current = parseAddress(location.hash);
  tell();
});
window.addEventListener('hashchange', () => {
  if (writeAddress(parseAddress(location.hash)) === writeAddress(current)) return;
  current = parseAddress(location.hash);
  tell();
});

/** Returns the current address. */
export function currentAddress(): Address {
  return current;
}

/** Returns why an address is refused; `null` if it is accepted. Used by a page without a server. */
type Guard = (next: Address, current: Address) => string | null;
let guard: Guard = () => null;
let mend: (next: Address) => Address = (next) => next;
let refused: string | null = null;

/** `mended` returns the address that is taken in place of another one. */
export function guardAddress(by: Guard, mended: (next: Address) => Address): void {
  guard = by;
  mend = mended;
}

/** Returns why the last change was refused, until the next one. */
export function refusedStep(): string | null {
  return refused;
}

/**
 * Changes the address. `isSmall`: the step has no entry of its own for Back, such as a letter typed
 * into a search.
 */
export function go(change: Partial<Address>, isSmall = false): void {
  const next = mend({ ...current, ...change });
  const text = writeAddress(next);
  if (text === writeAddress(current)) return;
  refused = guard(next, current);
  if (refused !== null) return tell();
  current = next;
  const place = text ? `#${text}` : location.pathname + location.search;
  if (isSmall) history.replaceState(null, '', place);
  else history.pushState(null, '', place);
  tell();
}

/** Returns the address, and redraws the component when it changes. */
export function useAddress(): Address {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = () => redraw((count) => count + 1);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return current;
}
