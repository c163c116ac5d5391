/** A curve in a cell: an amount over the time. */
import { formatBytes } from '../format';

export function Curve({ values }: { values: number[] }) {
  const most = Math.max(1, ...values);
  const points = values.map((value, at) => `${(at * 100) / Math.max(1, values.length - 1)},${20 - (value * 19) / most}`).join(' ');
  return (
    <svg class="growth" viewBox="0 0 100 20" preserveAspectRatio="none" role="img" aria-label={`from ${formatBytes(values[0] ?? 0)} to ${formatBytes(values.at(-1) ?? 0)}`}>
      <polygon points={`0,20 ${points} 100,20`} />
      <polyline points={points} />
    </svg>
  );
}
