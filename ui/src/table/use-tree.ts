/** A lazy tree for a request: made anew when the request changes, shown once its first rows are here. */
import { useEffect, useState } from 'preact/hooks';
import { type FetchPage, LazyTree } from './lazy-tree';

/**
 * `key` names the request: as long as it is the same, so is the tree. The old rows stay until the new ones come, so that nothing
 * flickers.
 */
export function useTree<Row>(key: string, fetchPage: FetchPage<Row>): { tree: LazyTree<Row>; isLoading: boolean } {
  const [shown, setShown] = useState<{ key: string; tree: LazyTree<Row> }>(() => ({ key: '', tree: new LazyTree<Row>(fetchPage) }));
  useEffect(() => {
    const tree = new LazyTree<Row>(fetchPage);
    const stop = tree.listen(() => {
      stop();
      setShown((old) => {
        if (old.tree !== tree) old.tree.close();
        return { key, tree };
      });
    });
    tree.start();
    return () => {
      stop();
      if (tree.topCount === null) tree.close();
    };
  }, [key]);
  return { tree: shown.tree, isLoading: shown.key !== key };
}
