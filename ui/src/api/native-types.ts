/** Snapshots of native heaps in the HTTP API. */
import type { RowsAnswer } from './row-types';
import type { Histogram } from './trace-types';

export interface NativeSnapshot {
  number: number;
  name: string;
  time_ns: number;
  trigger: string;
  blocks: number;
  bytes: number;
  processes: { pid: number | null; name: string; rss_bytes: number | null; blocks: number; bytes: number }[];
  notes: string[];
}

export interface NativeRow {
  id: string | null;
  frames: string[];
  bytes: number;
  blocks: number;
  youngest_ns: number;
  mean_age_ns: number;
  oldest_ns: number;
}

export interface NativeSummary extends RowsAnswer<NativeRow> {
  shown: number;
  bytes: number;
  blocks: number;
  oldest_ns: number;
  youngest_ns: number;
  mean_age_ns: number;
}

export interface TakenSnapshot {
  file: number;
  number: number;
  name: string;
  time_ns: number;
  trigger: string;
  bytes: number;
  blocks: number;
}

export interface NativeDiffRow {
  id: string | null;
  frames: string[];
  state: string;
  bytes_before: number;
  bytes_after: number;
  bytes_delta: number;
  blocks_delta: number;
  bytes_new: number | null;
  blocks_new: number | null;
  bytes_gone: number | null;
  blocks_gone: number | null;
  /** By snapshot. */
  bytes: number[];
  blocks: number[];
  /** 0 to 1: how steadily the bytes grew over the snapshots. */
  steadiness: number;
}

export interface NativeDiff extends RowsAnswer<NativeDiffRow> {
  snapshots: TakenSnapshot[];
  is_one_recording: boolean;
  bytes_delta: number;
  blocks_delta: number;
  bytes_new: number | null;
  bytes_gone: number | null;
}

export interface NativeSuspect {
  id: string | null;
  frames: string[];
  confidence: string;
  bytes_per_hour: number;
  growth_bytes: number;
  rising_share: number;
  chance: number;
  kept_share: number | null;
  oldest_ns: number;
  bytes: number[];
}

export interface NativeStatistics {
  command: string | null;
  bytes: number;
  blocks: number;
  heaps: NativePart[];
  threads: NativePart[];
  processes: NativePart[];
  sizes: Histogram | null;
  ages: Histogram | null;
}

export interface NativePart {
  name: string;
  bytes: number;
  blocks: number;
}
