/** Canvas that fills its box, sharp on every screen, drawn at most once a frame. */
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { onThemeChange } from '../frame/theme';

export interface CanvasSize {
  widthPx: number;
  heightPx: number;
}

/** Draws into a context whose unit is a CSS pixel. */
export type Draw = (context: CanvasRenderingContext2D, size: CanvasSize) => void;

interface CanvasProps extends Omit<preact.JSX.IntrinsicElements['canvas'], 'ref' | 'label' | 'size'> {
  draw: Draw;
  /** Label for screen readers. */
  label: string;
  onSize?: (size: CanvasSize) => void;
  children?: ComponentChildren;
}

export function Canvas({ draw, label, onSize, children, ...events }: CanvasProps) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState<CanvasSize>({ widthPx: 0, heightPx: 0 });
  const [theme, setTheme] = useState(0);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      const next = { widthPx: element.clientWidth, heightPx: element.clientHeight };
      setSize((old) => (old.widthPx === next.widthPx && old.heightPx === next.heightPx ? old : next));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => onThemeChange(() => setTheme((count) => count + 1)), []);
  useEffect(() => {
    if (size.widthPx > 0) onSize?.(size);
  }, [size]);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context || size.widthPx === 0 || size.heightPx === 0) return;
    const frame = requestAnimationFrame(() => {
      const scale = window.devicePixelRatio || 1;
      const [width, height] = [Math.round(size.widthPx * scale), Math.round(size.heightPx * scale)];
      if (element.width !== width || element.height !== height) {
        element.width = width;
        element.height = height;
      }
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, size.widthPx, size.heightPx);
      draw(context, size);
    });
    return () => cancelAnimationFrame(frame);
  }, [draw, size, theme]);

  return (
    <div ref={box} class="canvas-box">
      <canvas ref={canvas} role="img" aria-label={label} tabIndex={0} {...events} />
      {children}
    </div>
  );
}
