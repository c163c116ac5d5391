import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PathStep } from '../api/types';
import { pathLayout } from './path-layout';

const step = (id: number, held_as = ''): PathStep => ({ id, name: `o${id}`, held_as, place: null });

describe('the picture of retaining paths', () => {
  it('shares the objects that several ways have', () => {
    const layout = pathLayout([[step(1), step(2), step(3, '.a'), step(9, '.x')], [step(1), step(4), step(9, '.y')]]);
    assert.deepEqual(layout.boxes.map((box) => box.step.id).sort(), [1, 2, 3, 4, 9]);
    assert.equal(layout.arrows.length, 5);
    assert.equal(layout.columns, 4);
    assert.equal(layout.rows, 2);
    assert.deepEqual(layout.heights, [1, 2, 2, 1]);
  });

  it('every arrow leads to the right', () => {
    const layout = pathLayout([[step(1), step(2), step(9)], [step(1), step(5), step(6), step(2), step(9)]]);
    for (const arrow of layout.arrows) {
      arrow.places.forEach((place, at) => at > 0 && assert.equal(place.column, (arrow.places[at - 1]?.column ?? 0) + 1));
    }
  });

  it('no box and no arrow share a place', () => {
    const layout = pathLayout([[step(1), step(2), step(9)], [step(1), step(5), step(6), step(2), step(9)], [step(1), step(9)]]);
    const taken = [...layout.boxes, ...layout.arrows.flatMap((arrow) => arrow.places.slice(1, -1))].map(({ column, row }) => `${column} ${row}`);
    assert.equal(new Set(taken).size, taken.length);
  });

  it('ends on ways that lie', () => {
    assert.equal(pathLayout([[step(1), step(2), step(1)], [step(2), step(2)]]).boxes.length, 2);
    assert.equal(pathLayout([]).columns, 0);
  });
});
