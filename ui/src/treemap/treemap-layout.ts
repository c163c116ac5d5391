/**
 * Squarified treemap (Bruls, Huizing, van Wijk): children as rectangles that are as near to squares
 * as possible.
 */

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Places `values` (greatest first) in `box`; values that do not fit get no area. */
export function squarify(values: number[], box: Box): Box[] {
  const boxes: Box[] = [];
  const whole = values.reduce((sum, value) => sum + value, 0);
  if (whole <= 0 || box.width <= 0 || box.height <= 0) return values.map(() => ({ x: box.x, y: box.y, width: 0, height: 0 }));
  const perValue = (box.width * box.height) / whole;
  let left: Box = { ...box };
  let begin = 0;
  while (begin < values.length) {
    const side = Math.min(left.width, left.height);
    let end = begin + 1;
    let sum = (values[begin] ?? 0) * perValue;
    let worst = worstRatio(values[begin] ?? 0, values[begin] ?? 0, sum, side, perValue);
    while (end < values.length) {
      const more = sum + (values[end] ?? 0) * perValue;
      const next = worstRatio(values[begin] ?? 0, values[end] ?? 0, more, side, perValue);
      if (next > worst) break;
      [sum, worst] = [more, next];
      end += 1;
    }
    const thickness = side > 0 ? sum / side : 0;
    let along = 0;
    for (let at = begin; at < end; at += 1) {
      const length = thickness > 0 ? ((values[at] ?? 0) * perValue) / thickness : 0;
      boxes.push(left.width >= left.height
        ? { x: left.x, y: left.y + along, width: thickness, height: length }
        : { x: left.x + along, y: left.y, width: length, height: thickness });
      along += length;
    }
    left = left.width >= left.height
      ? { x: left.x + thickness, y: left.y, width: Math.max(0, left.width - thickness), height: left.height }
      : { x: left.x, y: left.y + thickness, width: left.width, height: Math.max(0, left.height - thickness) };
    begin = end;
  }
  return boxes;
}

/** Returns the worst side ratio in a strip, given its greatest and least values. */
function worstRatio(greatest: number, least: number, area: number, side: number, perValue: number): number {
  const [a, b] = [greatest * perValue, least * perValue];
  if (area <= 0 || b <= 0) return Infinity;
  return Math.max((side * side * a) / (area * area), (area * area) / (side * side * b));
}
