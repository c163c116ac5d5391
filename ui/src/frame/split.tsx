/** Two panes with a bar between them that can be moved, also by keyboard. */
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';

interface SplitProps {
  /** `side`: the second pane is at the right; `below`: it is below. */
  direction: 'side' | 'below';
  label: string;
  /** Share of the second pane. */
  share: number;
  first: ComponentChildren;
  /** Second pane; null if the first pane has all the room. */
  second: ComponentChildren;
}

export function Split({ direction, label, share: startShare, first, second }: SplitProps) {
  const box = useRef<HTMLDivElement>(null);
  const [share, setShare] = useState(startShare);
  const set = (next: number) => setShare(Math.max(0.12, Math.min(0.85, next)));
  const isSide = direction === 'side';
  const onPointerDown = (down: PointerEvent) => {
    const bar = down.currentTarget as HTMLElement;
    const area = box.current?.getBoundingClientRect();
    if (!area) return;
    bar.setPointerCapture(down.pointerId);
    bar.onpointermove = (move) => set(isSide ? (area.right - move.clientX) / area.width : (area.bottom - move.clientY) / area.height);
    bar.onpointerup = () => {
      bar.onpointermove = null;
    };
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: 0.03, ArrowUp: 0.03, ArrowRight: -0.03, ArrowDown: -0.03 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    set(share + step);
  };
  return (
    <div ref={box} class={`split is-${direction}`}>
      <div class="pane" style={{ flex: second === null ? '1 1 0' : `${1 - share} 1 0` }}>{first}</div>
      {second !== null && <div
        class="split-bar" role="separator" aria-label={label} aria-orientation={isSide ? 'vertical' : 'horizontal'} aria-valuenow={Math.round(share * 100)}
        tabIndex={0} onPointerDown={onPointerDown} onKeyDown={onKeyDown}
      />}
      {second !== null && <div class="pane" style={{ flex: `${share} 1 0` }}>{second}</div>}
    </div>
  );
}
