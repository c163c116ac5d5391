/** Callers and callees of a frame, counted from the sums of a page without a server. */
import type { SpanSums, StackAmounts } from './span-sums';

/** Amounts around a frame: of stacks with it, of stacks in which it is innermost, and by neighbour. */
export interface Around<Amounts> {
  inclusive: Amounts;
  own: Amounts;
  callers: Map<number, Amounts>;
  callees: Map<number, Amounts>;
}

/** Counts as the server does: a stack counts once for each caller and callee of the frame in it. */
export function neighbours<Amounts>(sums: SpanSums, amounts: StackAmounts, wanted: number, none: () => Amounts, add: (into: Amounts, stack: number) => void): Around<Amounts> {
  const found: Around<Amounts> = { inclusive: none(), own: none(), callers: new Map(), callees: new Map() };
  const addTo = (groups: Map<number, Amounts>, frames: Set<number>, stack: number) => {
    for (const frame of frames) {
      const group = groups.get(frame) ?? none();
      groups.set(frame, group);
      add(group, stack);
    }
  };
  const { nodes, stacks } = sums.answer;
  stacks.id.forEach((_, stack) => {
    if ((amounts[3]?.[stack] ?? 0) === 0) return;
    const [callers, callees] = [new Set<number>(), new Set<number>()];
    let has = false;
    let inner = -1;
    for (let node = stacks.node[stack] ?? -1; node >= 0; node = nodes.parent[node] ?? -1) {
      const frame = nodes.frame[node] ?? -1;
      if (frame === wanted) {
        has = true;
        if (inner < 0) add(found.own, stack);
        else callees.add(inner);
      }
      if (inner === wanted) callers.add(frame);
      inner = frame;
    }
    if (!has) return;
    add(found.inclusive, stack);
    addTo(found.callers, callers, stack);
    addTo(found.callees, callees, stack);
  });
  return found;
}
