/** Links and colours of the pieces of all memory. */
import { type Address, emptyFilter } from '../address/address';
import type { Piece, PieceKind } from '../api/types';
import { framePattern } from '../trace/metric-columns';

/** Kinds of live blocks; memory of the others is in no recorded block. */
const LIVE: readonly PieceKind[] = ['function', 'inclusive', 'loading', 'small', 'no_stack'];

/** Whether a piece is of live blocks. */
export function isLive(piece: Piece): boolean {
  return LIVE.includes(piece.kind);
}

/**
 * Returns the change of the address that shows more of a piece; null if no view has more. `at`: the
 * moment, empty for the peak. `hasResident`: whether the file has readings of resident memory.
 */
export function pieceLink(piece: Piece, at: string, hasResident: boolean): Partial<Address> | null {
  const then: Partial<Address> = { ...emptyFilter(), at: at === '' ? 'peak' : at, select: '', match: '', root: '', focus: '', sort: '', ascending: false };
  if (piece.frame) return { ...then, require_frames: [framePattern({ ...piece.frame })], view: 'stacks' };
  if (piece.kind === 'small') return { ...then, view: 'functions' };
  if (piece.kind === 'no_stack') return { ...then, view: 'stacks' };
  return hasResident ? { ...emptyFilter(), view: 'resident', select: '', moment: -1 } : null;
}

/** Places in the list of colours: functions from 0 on, other memory far from them. */
const PLACES: Partial<Record<PieceKind, number>> = { kept: 14, runtime: 15, files: 18, shared_memory: 20, thread_stacks: 21, written_data: 22, recorder: 19 };

/**
 * Returns the place of a piece in the list of colours; null for grey: what is small, or not known.
 */
export function piecePlace(piece: Piece, number: number): number | null {
  if (piece.kind === 'small' || piece.kind === 'no_stack' || piece.kind === 'unknown') return null;
  return PLACES[piece.kind] ?? number;
}
