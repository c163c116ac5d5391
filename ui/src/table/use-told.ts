/**
 * State from the answers to a table's pages, which changes only if its value changes, not with each
 * page.
 */
import { useCallback, useState } from 'preact/hooks';

/**
 * Returns the state. A new object with the same contents would redraw all rows during scrolling.
 */
export function useTold<T>(start: T): [T, (next: T) => void] {
  const [told, setTold] = useState<T>(start);
  const tell = useCallback((next: T) => setTold((old) => (JSON.stringify(old) === JSON.stringify(next) ? old : next)), []);
  return [told, tell];
}
