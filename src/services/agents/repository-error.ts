/** Why a repository gives no agent. The message is for the caller, and reveals nothing of the network in between. */

export type RepositoryProblem =
  /** The URL is not allowed. */
  | "url"
  /** The host is unknown, refuses, breaks off, or does not speak git's protocol. */
  | "host"
  /** The host takes too long. */
  | "time"
  /** The repository has no agent that can run. */
  | "content";

export class RepositoryError extends Error {
  override readonly name = "RepositoryError";

  constructor(
    readonly problem: RepositoryProblem,
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}
