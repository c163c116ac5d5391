/** Resident memory in the HTTP API. */
export type { KeptFinding, KeptLine, PageCells, ResidentAnswer, ResidentBand } from './answers';
