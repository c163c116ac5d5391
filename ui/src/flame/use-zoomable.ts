/**
 * Flame graph that can be zoomed: the whole, and details of a part that were too small to be sent
 * with the whole.
 */
import { useMemo } from 'preact/hooks';
import type { ApiError } from '../api/api-error';
import { isStatic } from '../api/client';
import type { FlameAnswer } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { type FlameLayout, flameLayout } from './flame-layout';
import { type Folding, foldLibraries } from './fold-libraries';

export interface Zoomable {
  /** Layout that is drawn: that of the part, once it has loaded. */
  layout: FlameLayout | null;
  whole: FlameLayout | null;
  /** Request as text, which is the same for newer answers. */
  question: string;
  /** Whether the layout has the part alone, which fills the width without a zoom. */
  isPart: boolean;
  error: ApiError | null;
  isLoading: boolean;
}

/** Loads the graph. `root`: id of the zoomed node; empty without a zoom. */
export function useZoomable(path: string, body: object, root: string, generation = 0, folding: Folding = { libraries: false, images: [] }): Zoomable {
  const layoutOf = (data: FlameAnswer) => flameLayout(foldLibraries(data, folding));
  const foldingKey = JSON.stringify(folding);
  const answer = useAnswer<FlameAnswer>(path, { ...body, root: null }, generation);
  const whole = useMemo(() => (answer.data ? layoutOf(answer.data) : null), [answer.data, foldingKey]);
  const zoomed = whole && root !== '' ? whole.byId.get(root) : undefined;
  // A box of several nodes has no part of its own: the part of its id would be less than the box.
  const isJoined = zoomed !== undefined && whole?.answer.joined?.[zoomed] === true;
  // A page without a server has only the whole.
  const isCut = !isStatic() && root !== '' && whole !== null && (zoomed === undefined || (!isJoined && hasLeftOut(whole.answer, zoomed)));
  const part = useAnswer<FlameAnswer>(path, isCut ? { ...body, root } : null, generation);
  const partLayout = useMemo(() => (isCut && part.data && part.data.nodes.id[0] === root ? layoutOf(part.data) : null), [isCut, part.data, root, foldingKey]);
  const isPart = partLayout !== null;
  return { layout: partLayout ?? whole, whole, question: `${isPart ? root : ''} ${JSON.stringify(body)}`, isPart, error: answer.error ?? part.error, isLoading: answer.isLoading || part.isLoading };
}

/**
 * True if a node below `node` was too small to be sent, or if that is unknown, as in a difference.
 */
function hasLeftOut(flame: FlameAnswer, node: number): boolean {
  const { parent, left_out: leftOut } = flame.nodes;
  if (leftOut === undefined) return true;
  const isBelow = new Uint8Array(parent.length);
  isBelow[node] = 1;
  for (let at = node; at < parent.length; at += 1) {
    const above = parent[at] ?? -1;
    if (above >= node && isBelow[above]) isBelow[at] = 1;
    if (isBelow[at] && (leftOut[at] ?? 0) > 0) return true;
  }
  return false;
}
