/**
 * Visible rows of a table. Browsers do not lay out elements higher than some ten million pixels, so
 * that a very long table scrolls on a shorter scale: the scroll position is a share of the whole.
 */

/** Largest height in pixels, below the limits of Chromium (33 million) and Firefox (17 million). */
export const HIGHEST_PX = 12_000_000;

/** Returns the height of the scrolled element. */
export function scrolledHeight(count: number, rowPx: number): number {
  return Math.min(count * rowPx, HIGHEST_PX);
}

export interface ScrollWindow {
  first: number;
  /** End of the visible rows, exclusive. */
  end: number;
  /** Start of row `first` relative to the upper edge (0 or less). */
  offsetPx: number;
}

export function scrollWindow(count: number, rowPx: number, viewPx: number, scrollPx: number): ScrollWindow {
  const wholePx = count * rowPx;
  const heightPx = scrolledHeight(count, rowPx);
  const travelPx = Math.max(0, heightPx - viewPx);
  const share = travelPx === 0 ? 0 : Math.min(1, Math.max(0, scrollPx / travelPx));
  const topPx = wholePx <= HIGHEST_PX ? Math.min(Math.max(0, scrollPx), Math.max(0, wholePx - viewPx)) : share * (wholePx - viewPx);
  const first = Math.max(0, Math.floor(topPx / rowPx));
  const end = Math.min(count, Math.ceil((topPx + viewPx) / rowPx));
  return { first, end, offsetPx: first * rowPx - topPx };
}

/** Returns the scroll position that shows row `index`, as near as possible to `scrollPx`. */
export function scrollTo(index: number, count: number, rowPx: number, viewPx: number, scrollPx: number): number {
  const wholePx = count * rowPx;
  const heightPx = scrolledHeight(count, rowPx);
  const scale = wholePx <= viewPx ? 0 : (heightPx - viewPx) / (wholePx - viewPx);
  const topPx = scale === 0 ? 0 : scrollPx / scale;
  const rowTopPx = index * rowPx;
  if (rowTopPx < topPx) return rowTopPx * scale;
  if (rowTopPx + rowPx > topPx + viewPx) return Math.ceil((rowTopPx + rowPx - viewPx) * scale);
  return scrollPx;
}
