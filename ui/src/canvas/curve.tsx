/** Curve of an amount over time, in a cell. */
import { formatBytes } from '../format';
import { within } from '../trace/estimate';

/** Draws the curve. `halves`: half of the interval of each estimate. */
export function Curve({ values, halves }: { values: number[]; halves?: number[] | undefined }) {
  const most = Math.max(1, ...values);
  const points = values.map((value, at) => `${(at * 100) / Math.max(1, values.length - 1)},${20 - (value * 19) / most}`).join(' ');
  const last = values.length - 1;
  const told = (at: number) => within(values[at] ?? 0, halves?.[at], formatBytes);
  return (
    <svg class="growth" viewBox="0 0 100 20" preserveAspectRatio="none" role="img" aria-label={`from ${told(0)} to ${told(last)}`}>
      <polygon points={`0,20 ${points} 100,20`} />
      <polyline points={points} />
    </svg>
  );
}
