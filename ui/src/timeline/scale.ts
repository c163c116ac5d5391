/** Ticks of axes. */

/** Returns a step of 1, 2 or 5 times a power of ten, at least `leastPx` wide. */
export function timeStep(spanNs: number, widthPx: number, leastPx: number): number {
  const rough = (spanNs * leastPx) / Math.max(1, widthPx);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  for (const factor of [1, 2, 5, 10]) {
    if (power * factor >= rough) return Math.max(1, power * factor);
  }
  return power * 10;
}

/** Returns the ticks of a time axis from `fromNs` to `toNs`. */
export function timeTicks(fromNs: number, toNs: number, stepNs: number): number[] {
  const ticks: number[] = [];
  for (let number = Math.ceil(fromNs / stepNs); number * stepNs <= toNs && ticks.length < 1000; number += 1) ticks.push(number * stepNs);
  return ticks;
}

/** Returns a step for amounts with round ticks: powers of two for bytes, of ten for counts. */
export function amountStep(most: number, ticks: number, isBytes: boolean): number {
  if (most <= 0) return 1;
  const rough = most / ticks;
  if (!isBytes) return timeStep(most, ticks, 1);
  return Math.max(1, 2 ** Math.round(Math.log2(rough)));
}

/** Clamps the visible interval to 0..`allNs`, and to at least a microsecond. */
export function clampSeen(fromNs: number, toNs: number, allNs: number): [number, number] {
  const span = Math.min(allNs, Math.max(1000, Math.round(toNs - fromNs)));
  const from = Math.round(Math.max(0, Math.min(allNs - span, fromNs)));
  return [from, from + span];
}
