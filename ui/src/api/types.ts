/** JSON of the HTTP API as types; docs/api.md has the meaning of the numbers. */
export type { Amounts } from './metrics';
export type * from './file-types';
export type * from './finding-types';
export type * from './heap-types';
export type * from './native-types';
export type * from './resident-types';
export type * from './row-types';
export type * from './story-types';
export type * from './trace-types';
export type * from './where-types';
