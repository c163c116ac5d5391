/** A lazy tree for a request: made anew when the request changes, shown once its first rows are here. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type FetchPage, LazyTree } from './lazy-tree';

/**
 * `key` names the request: as long as it is the same, so is the tree. The old rows stay until the new ones come, so that nothing
 * flickers. `generation` counts up when the same request has newer rows: then they are fetched where the table is looked at, and it stays
 * there.
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
