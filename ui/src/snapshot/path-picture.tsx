/** Picture of the retaining paths: boxes are objects, arrows the fields that hold them. */
import { useEffect, useRef } from 'preact/hooks';
import type { PathStep } from '../api/types';
import { fittedNameIn } from '../canvas/fitted-text';
import { type PathPlace, pathLayout } from './path-layout';

const BOX_REM = 14;
const GAP_REM = 9;
const ROW_REM = 4.2;
const MIDDLE_REM = 1.45;
/** Width available for a name in a box, and the size of its text. */
const NAME_REM = BOX_REM - 1.4;
const NAME_SIZE_REM = 0.92;

export function PathPicture({ paths, onChoose }: { paths: PathStep[][]; onChoose: (step: PathStep) => void }) {
  const layout = pathLayout(paths);
  const remPx = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const box = useRef<HTMLDivElement>(null);
  // The object's end of the path is visible first, the root's after scrolling.
  useEffect(() => {
    if (box.current) box.current.scrollLeft = box.current.scrollWidth;
  }, [layout.columns, layout.rows]);
  const x = (column: number) => 1 + column * (BOX_REM + GAP_REM);
  const y = ({ column, row }: PathPlace) => 0.8 + (row + (layout.rows - (layout.heights[column] ?? 0)) / 2) * ROW_REM;
  const width = x(layout.columns - 1) + BOX_REM + 1;
  const height = 1.2 + layout.rows * ROW_REM;
  const curve = (places: PathPlace[]) => {
    let text = '';
    for (let at = 1; at < places.length; at += 1) {
      const [from, to] = [places[at - 1], places[at]];
      if (!from || !to) continue;
      const [x1, y1, x2, y2] = [x(from.column) + BOX_REM, y(from) + MIDDLE_REM, x(to.column), y(to) + MIDDLE_REM];
      text += at === 1 ? `M${x1} ${y1}` : ` L${x1} ${y1}`;
      text += ` C${x1 + GAP_REM / 2} ${y1} ${x2 - GAP_REM / 2} ${y2} ${x2} ${y2}`;
    }
    return text;
  };
  return (
    <div ref={box} class="path-picture" role="group" aria-label="Retaining paths" tabIndex={0}>
      <div class="path-space" style={{ width: `${width}rem`, height: `${height}rem` }}>
        <svg viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
          {layout.arrows.map((arrow, at) => {
            const end = arrow.places.at(-1);
            const [tipX, tipY] = end ? [x(end.column), y(end) + MIDDLE_REM] : [0, 0];
            return (
              <g key={at}>
                <path class="arrow" d={curve(arrow.places)} />
                <path class="tip" d={`M${tipX} ${tipY} l-0.6 -0.3 v0.6 z`} />
              </g>
            );
          })}
        </svg>
        {layout.arrows.map((arrow, at) => {
          const [from, to] = arrow.places;
          if (!from || !to) return null;
          return (
            <span key={at} class="arrow-label" title={arrow.label} style={{ left: `${x(from.column) + BOX_REM + 0.4}rem`, top: `${(y(from) + y(to)) / 2 + 0.1}rem`, width: `${GAP_REM - 1.2}rem` }}>
              <span>{arrow.label}</span>
            </span>
          );
        })}
        {layout.boxes.map((box) => (
          <button
            key={box.step.id} type="button" class={`path-object${box.column === layout.columns - 1 ? ' is-last' : ''}`} title={`${box.step.name} @${box.step.id}${box.step.place ? `\n${box.step.place}` : ''}`}
            style={{ left: `${x(box.column)}rem`, top: `${y(box)}rem`, width: `${BOX_REM}rem` }} onClick={() => onChoose(box.step)}
          >
            <strong>{fittedNameIn(box.step.name, NAME_REM * remPx, NAME_SIZE_REM * remPx, 700)}</strong>
            <span class="quiet">@{box.step.id}{box.step.place ? ` ${box.step.place.slice(box.step.place.lastIndexOf('/') + 1)}` : ''}</span>
          </button>
        ))}
      </div>
    </div>
  );
}
