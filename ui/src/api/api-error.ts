/** Errors of the server, as values that a person can read. */

/** Server's answer to a request that failed. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly offset: number | null = null,
    readonly field: string | null = null,
  ) {
    super(message);
  }
}
