/** Snapshots of native heaps in the HTTP API. */
export type { NativeDiff, NativeDiffRow, NativePart, NativeRow, NativeSnapshot, NativeStatistics, NativeSummary, TakenSnapshot } from './answers';

export interface NativeSuspect {
  id: string | null;
  own?: number | null;
  frames: string[];
  confidence: string;
  bytes_per_hour: number;
  growth_bytes: number;
  rising_share: number;
  chance: number;
  kept_share: number | null;
  oldest_ns: number;
  block_bytes: number[];
}
export type { GraphHolder, GraphLeaksAnswer, HoldersAnswer, LeakedRow, PageOwner, PagesAnswer, PlaceAnswer, PlaceMoment, PlacePin } from './answers';
