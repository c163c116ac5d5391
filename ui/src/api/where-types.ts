/** Breakdown of all memory at a moment. */
import type * as answers from './answers';

export type { Piece, PieceKind } from './answers';

export interface WhereAnswer extends answers.WhereAnswer {}
