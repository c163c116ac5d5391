/**
 * Hook for a lazy tree of a request: created anew when the request changes, shown once its first
 * rows are loaded.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type FetchPage, LazyTree } from './lazy-tree';

/**
 * Returns the tree. `key` identifies the request, and so the tree. The old rows stay until the new
 * ones are loaded, so that the table does not flicker. `generation` increases when the same request
 * has newer rows: they are fetched at the current scroll position, which stays.
 */
export function useTree<Row>(key: string, fetchPage: FetchPage<Row>, generation = 0): { tree: LazyTree<Row>; isLoading: boolean } {
  const whole = `${generation} ${key}`;
  const [shown, setShown] = useState<{ whole: string; tree: LazyTree<Row> }>(() => ({ whole: '', tree: new LazyTree<Row>(fetchPage, '') }));
  const last = useRef(shown);
  last.current = shown;
  useEffect(() => {
    const tree = new LazyTree<Row>(fetchPage, key);
    const stop = tree.listen(() => {
      stop();
      setShown((old) => {
        if (old.tree !== tree) old.tree.close();
        return { whole, tree };
      });
    });
    tree.start(last.current.tree.name === key ? last.current.tree.neededFrom : 0);
    return () => {
      stop();
      if (tree.topCount === null) tree.close();
    };
  }, [whole]);
  return { tree: shown.tree, isLoading: shown.whole !== whole && last.current.tree.name !== key };
}
