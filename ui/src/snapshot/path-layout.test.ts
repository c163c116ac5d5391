import { describe, expect, it } from 'vitest';
import type { PathStep } from '../api/types';
import { pathLayout } from './path-layout';

const step = (id: number, held_as = ''): PathStep => ({ id, name: `o${id}`, held_as, place: null });

describe('the picture of retaining paths', () => {
  it('shares the objects that several ways have', () => {
    const layout = pathLayout([[step(1), step(2), step(3, '.a'), step(9, '.x')], [step(1), step(4), step(9, '.y')]]);
    expect(layout.boxes.map((box) => box.step.id).sort()).toEqual([1, 2, 3, 4, 9]);
    expect(layout.arrows).toHaveLength(5);
    expect(layout.columns).toBe(4);
    expect(layout.rows).toBe(2);
    expect(layout.heights).toEqual([1, 2, 2, 1]);
  });

  it('every arrow leads to the right', () => {
    const layout = pathLayout([[step(1), step(2), step(9)], [step(1), step(5), step(6), step(2), step(9)]]);
    for (const arrow of layout.arrows) {
      arrow.places.forEach((place, at) => at > 0 && expect(place.column).toBe((arrow.places[at - 1]?.column ?? 0) + 1));
    }
  });

  it('no box and no arrow share a place', () => {
    const layout = pathLayout([[step(1), step(2), step(9)], [step(1), step(5), step(6), step(2), step(9)], [step(1), step(9)]]);
    const taken = [...layout.boxes, ...layout.arrows.flatMap((arrow) => arrow.places.slice(1, -1))].map(({ column, row }) => `${column} ${row}`);
    expect(new Set(taken).size).toBe(taken.length);
  });

  it('ends on ways that lie', () => {
    expect(pathLayout([[step(1), step(2), step(1)], [step(2), step(2)]]).boxes).toHaveLength(2);
    expect(pathLayout([]).columns).toBe(0);
  });
});
