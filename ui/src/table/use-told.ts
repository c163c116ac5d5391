/** What answers to a table's pages say of the whole: state that changes only where it says something else, not with each page. */
import { useCallback, useState } from 'preact/hooks';

/** A new value for the same words would draw all rows anew while they are scrolled. */
export function useTold<T>(start: T): [T, (next: T) => void] {
  const [told, setTold] = useState<T>(start);
  const tell = useCallback((next: T) => setTold((old) => (JSON.stringify(old) === JSON.stringify(next) ? old : next)), []);
  return [told, tell];
}
