/** Moments of the address space, and sentences on what keeps free memory. */
import type { PlaceMoment, PlacePin } from '../api/types';
import { formatBytes, plural } from '../format';

/** Returns the index of the last moment until a time, or of the first one. */
export function nearestMoment(moments: Pick<PlaceMoment, 'time_ns'>[], timeNs: number): number {
  const after = moments.findIndex((moment) => moment.time_ns > timeNs);
  return after < 0 ? moments.length - 1 : Math.max(0, after - 1);
}

/** Formats `8.00 MiB of free memory are held by 14 blocks of load_report (1.2 KiB)`. */
export function pinSentence(pin: PlacePin, owners: string[]): string {
  return `${formatBytes(pin.free_bytes)} of free memory are held by ${plural(pin.block_count, 'block')} of ${owners[pin.owner] ?? 'a function'} (${formatBytes(pin.block_bytes)}).`;
}
