/** Path of the program in use: what HEAPR says, this package's, or the first in PATH. */
export function program(): string;

/** Writes a snapshot of this thread's heap, after a garbage collection; the file's path. */
export function takeSnapshot(file?: string): string;

/** Something keeps growing; the message names it, where it was made, and what holds it. */
export class HeapGrowthError extends Error {}

export interface GrowthOptions {
  /** Runs before the first snapshot, in which caches fill (10). */
  warmup?: number;
  /** Runs between two snapshots (30). */
  runs?: number;
  /** How many are taken, at least 2 (3). */
  snapshots?: number;
  /** Growth that is no failure (0). */
  allowedBytes?: number;
  /** A folder where the snapshots stay if it fails. */
  keep?: string;
}

/** Runs a function many times and fails if something keeps growing with it; what heapr said. */
export function expectNoGrowth(run: () => unknown, options?: GrowthOptions): Promise<string>;
