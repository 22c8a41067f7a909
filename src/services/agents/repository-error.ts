/** Why a repository gives no agent. The message is for whoever named it or asks for it anew, and tells nothing of the network between. */

export type RepositoryProblem =
  /** Its URL may not be asked for. */
  | "url"
  /** Its host does not give it: unknown, refusing, breaking off, answering something else than git's protocol. */
  | "host"
  /** Its host takes too long. */
  | "time"
  /** It was given, and holds no agent that can be run. */
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
