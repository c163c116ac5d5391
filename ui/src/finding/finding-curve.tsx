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

/** Draws the curve. `halves`: half of the interval of each estimate. */
export function FindingCurve({ curve, halves, label }: { curve: [number, number][]; halves?: number[] | undefined; label: string }) {
  const points = curvePoints(curve, WIDTH, HEIGHT);
  const most = Math.max(...curve.map(([, bytes]) => bytes));
  const highest = curve.findIndex(([, bytes]) => bytes === most);
  return (
    <figure class="finding-curve">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <polygon points={`${points.split(' ')[0]?.split(',')[0] ?? 0},${HEIGHT} ${points} ${WIDTH},${HEIGHT}`} />
        <polyline points={points} />
      </svg>
      <figcaption class="quiet"><span>{within(most, halves?.[highest], formatBytes)} at most</span><span>{formatDuration(curve.at(-1)?.[0] ?? 0)}</span></figcaption>
    </figure>
  );
}
