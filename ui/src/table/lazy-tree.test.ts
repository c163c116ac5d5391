import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LazyTree, PAGE_ROWS } from './lazy-tree';

/** Tree of numbers: the children of `n` are `n.0` to `n.(count - 1)`. */
function numbers(topCount: number, childCount: number): { tree: LazyTree<string>; asked: () => number } {
  let asked = 0;
  const tree = new LazyTree<string>(async (parent, offset, limit) => {
    asked += 1;
    const count = parent === null ? topCount : childCount;
    const rows = Array.from({ length: Math.max(0, Math.min(limit, count - offset)) }, (_, at) =>
      parent === null ? String(offset + at) : `${parent}.${offset + at}`);
    return { rows, count };
  });
  tree.start();
  return { tree, asked: () => asked };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

/** Returns the visible rows of such a tree by brute force. */
function naive(open: Set<string>, topCount: number, childCount: number): string[] {
  const rows: string[] = [];
  const add = (name: string) => {
    rows.push(name);
    if (open.has(name)) for (let child = 0; child < childCount; child += 1) add(`${name}.${child}`);
  };
  for (let top = 0; top < topCount; top += 1) add(String(top));
  return rows;
}

describe('a lazy tree', () => {
  it('loads only the pages that are seen', async () => {
    const { tree, asked } = numbers(1_000_000, 0);
    await settled();
    assert.equal(tree.count, 1_000_000);
    tree.need(500_000, 500_040);
    await settled();
    assert.equal(tree.at(500_000)?.row, '500000');
    assert.equal(tree.at(700_000)?.row, undefined);
    assert.equal(asked(), 2);
  });

  it('shows the same rows as a naive tree after any opening and shutting', async () => {
    const { tree } = numbers(30, 4);
    await settled();
    const open = new Set<string>();
    let seed = 12345;
    const random = (below: number) => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return seed % below;
    };
    for (let step = 0; step < 200; step += 1) {
      const expected = naive(open, 30, 4);
      assert.equal(tree.count, expected.length);
      tree.need(0, tree.count);
      await settled();
      assert.deepEqual(Array.from({ length: tree.count }, (_, at) => tree.at(at)?.row), expected);
      const at = random(expected.length);
      const name = expected[at]!;
      if (open.has(name)) {
        tree.shut(at);
        for (const other of [...open]) if (other === name || other.startsWith(`${name}.`)) open.delete(other);
      } else {
        tree.open(at);
        open.add(name);
        await settled();
      }
    }
  });

  it('knows the parent and the depth of a row', async () => {
    const { tree } = numbers(3, 2);
    await settled();
    tree.open(1);
    await settled();
    assert.deepEqual([0, 1, 2, 3, 4].map((at) => tree.at(at)?.row), ['0', '1', '1.0', '1.1', '2']);
    assert.equal(tree.parentIndex(3), 1);
    assert.equal(tree.parentIndex(4), -1);
    assert.equal(tree.at(3)?.depth, 1);
    assert.equal(tree.at(3)?.parent, '1');
  });

  it('shows a row that waits while children are on their way', async () => {
    const { tree } = numbers(2, 3);
    await settled();
    tree.open(0);
    assert.equal(tree.count, 3);
    assert.equal(tree.at(1)?.row, undefined);
    await settled();
    assert.equal(tree.count, 5);
  });

  it('says what went wrong and asks again when it is needed again', async () => {
    let fails = true;
    const tree = new LazyTree<number>(async (_, offset) => {
      if (fails && offset > 0) throw new Error('the file has vanished');
      return { rows: Array.from({ length: PAGE_ROWS }, (_, at) => offset + at), count: 1000 };
    });
    tree.start();
    await settled();
    tree.need(600, 610);
    await settled();
    assert.equal(tree.error?.message, 'the file has vanished');
    fails = false;
    tree.need(600, 610);
    await settled();
    assert.equal(tree.at(600)?.row, 600);
    assert.equal(tree.error, null);
  });

  it('gives all rows for saving', async () => {
    const { tree } = numbers(2500, 0);
    assert.equal((await tree.all(1_000_000)).length, 2500);
    assert.equal((await tree.all(1200)).length, 1200);
  });
});
