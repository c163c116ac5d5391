/** What is shown of another thing begins at its top, wherever the one before was scrolled to. */
import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** For the element that scrolls; `shown` is what stands in it. */
export function useTop<E extends HTMLElement>(shown: unknown): RefObject<E | null> {
  const element = useRef<E>(null);
  useLayoutEffect(() => {
    if (element.current) element.current.scrollTop = 0;
  }, [shown]);
  return element;
}
