/** Curve of what a function held over time, with its axes. */
import { formatBytes, formatDuration } from '../format';
import { within } from '../trace/estimate';

const WIDTH = 320;
const HEIGHT = 90;

/** Returns the points of the line in a box of this size. */
export function curvePoints(curve: [number, number][], width: number, height: number): string {
  const most = Math.max(1, ...curve.map(([, bytes]) => bytes));
  const last = Math.max(1, curve.at(-1)?.[0] ?? 1);
  return curve.map(([time, bytes]) => `${((time * width) / last).toFixed(1)},${(height - (bytes * (height - 2)) / most).toFixed(1)}`).join(' ');
}

/** Returns the points of the band in which the amounts lie with a confidence of 95 %. */
export function veilPoints(curve: [number, number][], halves: number[], width: number, height: number): string {
  const most = Math.max(1, ...curve.map(([, bytes]) => bytes));
  const last = Math.max(1, curve.at(-1)?.[0] ?? 1);
  const point = ([time, bytes]: [number, number], off: number) => `${((time * width) / last).toFixed(1)},${Math.max(0, Math.min(height, height - ((bytes + off) * (height - 2)) / most)).toFixed(1)}`;
  const above = curve.map((one, at) => point(one, halves[at] ?? 0));
  const below = curve.map((one, at) => point(one, -(halves[at] ?? 0))).reverse();
  return [...above, ...below].join(' ');
}

/** Draws the curve. `halves`: half of the interval of each estimate. */
export function FindingCurve({ curve, halves, label }: { curve: [number, number][]; halves?: number[] | undefined; label: string }) {
  const points = curvePoints(curve, WIDTH, HEIGHT);
  const most = Math.max(...curve.map(([, bytes]) => bytes));
  const highest = curve.findIndex(([, bytes]) => bytes === most);
  return (
    <figure class="finding-curve">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <polygon points={`${points.split(' ')[0]?.split(',')[0] ?? 0},${HEIGHT} ${points} ${WIDTH},${HEIGHT}`} />
        {halves && halves.some((half) => half > 0) && <polygon class="veil" points={veilPoints(curve, halves, WIDTH, HEIGHT)} />}
        <polyline points={points} />
      </svg>
      <figcaption class="quiet"><span>{within(most, halves?.[highest], formatBytes)} at most</span><span>{formatDuration(curve.at(-1)?.[0] ?? 0)}</span></figcaption>
    </figure>
  );
}
