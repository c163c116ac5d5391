/**
 * Folds what is not the program's own in a flame graph: frames of libraries that call one another
 * are one box, which has the name of the outermost one. So are those of an image that was chosen.
 */
import type { FlameAnswer } from '../api/types';
import { fileName } from '../format';

/**
 * A flame graph with the number of frames that each box has taken in, whether a box is more than
 * the node of its id, and whether it stands for its image; absent if it is not folded.
 */
export type FoldedAnswer = FlameAnswer & { merged?: number[]; joined?: boolean[]; collapsed?: boolean[] };

/** Frames that are one box where they call one another. */
export interface Folding {
  /** Those of all libraries. */
  libraries: boolean;
  /** Those of each of these images, by the last part of its path. */
  images: string[];
}

/** Group of the frames of all libraries: no image has this name. */
const LIBRARIES = '/';

/** Adds two halves of intervals. */
const both = (one: number, other: number) => Math.round(Math.hypot(one, other));

/**
 * Returns the graph with folded libraries; the same graph if it does not tell whose code frames are.
 * A box keeps what its frames allocate by themselves, so that all sums stay.
 */
export function foldLibraries(answer: FlameAnswer, { libraries, images }: Folding = { libraries: true, images: [] }): FoldedAnswer {
  const { nodes, frames, names } = answer;
  const foldsLibraries = libraries && frames.some((frame) => frame.is_own === true);
  if (nodes.value === undefined || (!foldsLibraries && images.length === 0)) return answer;
  const groups = frames.map((frame) => {
    const image = fileName(names[frame.module] ?? '');
    return images.includes(image) ? image : foldsLibraries && frame.is_own !== true ? LIBRARIES : '';
  });
  const folded = { id: [] as string[], parent: [] as number[], frame: [] as number[], value: [] as number[], self: [] as number[], left_out: [] as number[] };
  const halves = { value_plus_minus: [] as number[], self_plus_minus: [] as number[], left_out_plus_minus: [] as number[] };
  const merged: number[] = [];
  const joined: boolean[] = [];
  const collapsed: boolean[] = [];
  /** Group of each box. */
  const groupAt: string[] = [];
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
    const frame = nodes.frame[node] ?? -1;
    // A box without a frame, but for the whole, is a library's.
    const group = node === 0 ? '' : (groups[frame] ?? (foldsLibraries ? LIBRARIES : ''));
    if (group !== '' && groupAt[parent] === group) {
      placeOf[node] = parent;
      merged[parent] = (merged[parent] ?? 0) + 1;
      add(parent, node, false);
      return;
    }
    const isImage = group !== '' && group !== LIBRARIES;
    const key = isImage ? `${parent} ${group}` : `${parent} ${frame}`;
    const known = parent >= 0 ? byKey.get(key) : undefined;
    const place = known ?? folded.id.push(id) - 1;
    if (known === undefined) {
      folded.parent[place] = parent;
      folded.frame[place] = frame;
      merged[place] = 0;
      joined[place] = false;
      collapsed[place] = isImage;
      groupAt[place] = group;
      byKey.set(key, place);
    } else {
      joined[place] = true;
      if (isImage) merged[place] = (merged[place] ?? 0) + 1;
    }
    placeOf[node] = place;
    add(place, node, true);
  });
  const isEstimate = nodes.value_plus_minus !== undefined;
  return { ...answer, node_count: folded.id.length, nodes: { ...folded, ...(isEstimate ? halves : {}) }, merged, joined, collapsed };
}
