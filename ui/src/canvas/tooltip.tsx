/** A small box beside the pointer that never leaves the window. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

export function Tooltip({ x, y, children }: { x: number; y: number; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ left: x + 14, top: y + 14 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const left = x + 14 + element.offsetWidth > window.innerWidth - 4 ? Math.max(4, x - 14 - element.offsetWidth) : x + 14;
    const top = y + 14 + element.offsetHeight > window.innerHeight - 4 ? Math.max(4, y - 14 - element.offsetHeight) : y + 14;
    setPlace({ left, top });
  }, [x, y]);
  return (
    <div ref={box} class="tooltip" style={{ left: `${place.left}px`, top: `${place.top}px` }}>
      {children}
    </div>
  );
}
