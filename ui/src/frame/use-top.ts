/** Scrolls an element to its top when its contents are replaced. */
import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** Returns the reference for the scrolling element; `shown` identifies its contents. */
export function useTop<E extends HTMLElement>(shown: unknown): RefObject<E | null> {
  const element = useRef<E>(null);
  useLayoutEffect(() => {
    if (element.current) element.current.scrollTop = 0;
  }, [shown]);
  return element;
}
