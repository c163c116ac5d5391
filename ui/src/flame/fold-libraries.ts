/**
 * Folds what is not the program's own in a flame graph: frames of libraries that call one another
 * are one box, which has the name of the outermost one.
 */
import type { FlameAnswer } from '../api/types';

/**
 * A flame graph with the number of frames that each box has taken in, and whether a box is more than
 * the node of its id; absent if it is not folded.
 */
export type FoldedAnswer = FlameAnswer & { merged?: number[]; joined?: boolean[] };

/** Adds two halves of intervals. */
const both = (one: number, other: number) => Math.round(Math.hypot(one, other));

/**
 * Returns the graph with folded libraries; the same graph if it does not tell whose code frames are.
 * A box keeps what its frames allocate by themselves, so that all sums stay.
 */
export function foldLibraries(answer: FlameAnswer): FoldedAnswer {
  const { nodes, frames } = answer;
  if (nodes.value === undefined || !frames.some((frame) => frame.is_own === true)) return answer;
  const folded = { id: [] as string[], parent: [] as number[], frame: [] as number[], value: [] as number[], self: [] as number[], left_out: [] as number[] };
  const halves = { value_plus_minus: [] as number[], self_plus_minus: [] as number[], left_out_plus_minus: [] as number[] };
  const merged: number[] = [];
  const joined: boolean[] = [];
  const isLibrary: boolean[] = [];
  const placeOf: number[] = [];
  const byKey = new Map<string, number>();
  const half = (name: keyof typeof halves, node: number) => nodes[name]?.[node] ?? 0;
  const add = (place: number, node: number, isWhole: boolean) => {
    if (isWhole) {
      folded.value[place] = (folded.value[place] ?? 0) + (nodes.value?.[node] ?? 0);
      halves.value_plus_minus[place] = both(halves.value_plus_minus[place] ?? 0, half('value_plus_minus', node));
    }
    folded.self[place] = (folded.self[place] ?? 0) + (nodes.self?.[node] ?? 0);
    folded.left_out[place] = (folded.left_out[place] ?? 0) + (nodes.left_out?.[node] ?? 0);
    halves.self_plus_minus[place] = both(halves.self_plus_minus[place] ?? 0, half('self_plus_minus', node));
    halves.left_out_plus_minus[place] = both(halves.left_out_plus_minus[place] ?? 0, half('left_out_plus_minus', node));
  };
  nodes.id.forEach((id, node) => {
    const above = nodes.parent[node] ?? -1;
    const parent = above >= 0 ? (placeOf[above] ?? 0) : -1;
    const isLib = node !== 0 && frames[nodes.frame[node] ?? -1]?.is_own !== true;
    if (isLib && isLibrary[parent]) {
      placeOf[node] = parent;
      merged[parent] = (merged[parent] ?? 0) + 1;
      add(parent, node, false);
      return;
    }
    const key = `${parent} ${nodes.frame[node] ?? -1}`;
    const known = parent >= 0 ? byKey.get(key) : undefined;
    const place = known ?? folded.id.push(id) - 1;
    if (known === undefined) {
      folded.parent[place] = parent;
      folded.frame[place] = nodes.frame[node] ?? -1;
      merged[place] = 0;
      joined[place] = false;
      isLibrary[place] = isLib;
      byKey.set(key, place);
    } else {
      joined[place] = true;
    }
    placeOf[node] = place;
    add(place, node, true);
  });
  const isEstimate = nodes.value_plus_minus !== undefined;
  return { ...answer, node_count: folded.id.length, nodes: { ...folded, ...(isEstimate ? halves : {}) }, merged, joined };
}
