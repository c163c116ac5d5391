/** Resident memory in the HTTP API. */
export type { SavedFinding, SavedLine, PageCells, ResidentAnswer, ResidentBand } from './answers';
