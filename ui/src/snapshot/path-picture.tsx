/** The retaining paths, drawn: boxes are objects, arrows the fields that hold them. */
import type { PathStep } from '../api/types';
import { pathLayout } from './path-layout';

const BOX_REM = 14;
const GAP_REM = 9;
const ROW_REM = 4.4;

export function PathPicture({ paths, onChoose }: { paths: PathStep[][]; onChoose: (step: PathStep) => void }) {
  const layout = pathLayout(paths);
  const x = (column: number) => 1 + column * (BOX_REM + GAP_REM);
  // The last column is the object itself: beside the middle of the others.
  const y = (column: number, row: number) => {
    const inColumn = layout.boxes.filter((box) => box.column === column).length;
    return 1 + (row + (layout.rows - inColumn) / 2) * ROW_REM;
  };
  const width = x(layout.columns - 1) + BOX_REM + 1;
  const height = 1 + layout.rows * ROW_REM;
  return (
    <div class="path-picture" role="group" aria-label="Retaining paths" tabIndex={0}>
      <div class="path-space" style={{ width: `${width}rem`, height: `${height}rem` }}>
        <svg viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" /></marker>
          </defs>
          {layout.arrows.map((arrow) => {
            const [x1, y1] = [x(arrow.from.column) + BOX_REM, y(arrow.from.column, arrow.from.row) + 1.4];
            const [x2, y2] = [x(arrow.to.column), y(arrow.to.column, arrow.to.row) + 1.4];
            const bend = Math.min(GAP_REM / 2, (x2 - x1) / 2);
            return <path key={`${arrow.from.step.id} ${arrow.to.step.id} ${arrow.label}`} class="arrow" d={`M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`} marker-end="url(#arrow)" />;
          })}
        </svg>
        {layout.arrows.map((arrow) => (
          <span
            key={`${arrow.from.step.id} ${arrow.to.step.id} ${arrow.label}`} class="arrow-label" title={arrow.label}
            style={{ left: `${x(arrow.to.column) - GAP_REM + 0.3}rem`, top: `${y(arrow.to.column, arrow.to.row) + (y(arrow.from.column, arrow.from.row) - y(arrow.to.column, arrow.to.row)) * 0.25 + 0.05}rem`, width: `${GAP_REM - 0.6}rem` }}
          >
            {arrow.label}
          </span>
        ))}
        {layout.boxes.map((box) => (
          <button
            key={box.step.id} type="button" class={`path-object${box.column === layout.columns - 1 ? ' is-last' : ''}`} title={`${box.step.name} @${box.step.id}${box.step.place ? `\n${box.step.place}` : ''}`}
            style={{ left: `${x(box.column)}rem`, top: `${y(box.column, box.row)}rem`, width: `${BOX_REM}rem` }} onClick={() => onChoose(box.step)}
          >
            <strong>{box.step.name}</strong>
            <span class="quiet">@{box.step.id}{box.step.place ? ` ${box.step.place.slice(box.step.place.lastIndexOf('/') + 1)}` : ''}</span>
          </button>
        ))}
      </div>
    </div>
  );
}
