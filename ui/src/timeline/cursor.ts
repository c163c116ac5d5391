/** Moment under the pointer on the timeline, for views that follow it. */
import { useEffect, useState } from 'preact/hooks';

/** Time between two moments that followers get, so that a moving pointer sends few requests. */
const STEP_MS = 120;

let moment: number | null = null;
let timer = 0;
const followers = new Set<(momentNs: number | null) => void>();

/** Sets the moment; null: the pointer has left the timeline. */
export function setCursor(momentNs: number | null): void {
  moment = momentNs;
  if (momentNs === null) {
    clearTimeout(timer);
    timer = 0;
    tell();
  } else if (timer === 0) {
    timer = window.setTimeout(() => {
      timer = 0;
      tell();
    }, STEP_MS);
  }
}

function tell(): void {
  for (const follow of followers) follow(moment);
}

/** Returns the moment under the pointer; null without one. */
export function useCursor(): number | null {
  const [shown, setShown] = useState<number | null>(null);
  useEffect(() => {
    followers.add(setShown);
    return () => {
      followers.delete(setShown);
    };
  }, []);
  return shown;
}
