/** Answers for the story of a finding and for builds side by side. */
export type { BuildFunction, DiffFunctionsAnswer, Example, ExamplesAnswer } from './answers';
