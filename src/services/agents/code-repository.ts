/** What a code agent's repository gives: the seam between the accounts' agents and the fetching of code. */

export interface DeployedCode {
  /** 40 lowercase hexadecimal digits. */
  readonly commitSha: string;
  /** One script, made of agent.ts and what it imports. */
  readonly bundle: string;
  /** The agent's identity, taken from the repository: valid as a model's name, title and description. */
  readonly name: string;
  readonly title: string;
  readonly description: string | null;
}

export interface RefreshedCode extends Pick<DeployedCode, "commitSha" | "bundle"> {
  /** Undefined: the host did not say. */
  readonly description: string | null | undefined;
}

export interface CodeRepositories {
  /**
   * The latest commit of the default branch, fetched through the outbound guard and bundled; nothing of it is run. Rejects with
   * BAD_REQUEST, `param: "repository"`, when it cannot be had or holds no agent that can be bundled; with SERVICE_UNAVAILABLE when
   * too many are fetched at this moment.
   */
  deploy(repository: string, signal: AbortSignal): Promise<DeployedCode>;
  /**
   * As `deploy`, of a repository that was deployed before and whose host is at fault when it cannot be had: UPSTREAM_ERROR,
   * UPSTREAM_TIMEOUT. `begin` is called when there is room for it, before the host is asked, and may refuse; what it resolves to is
   * in the answer.
   */
  refresh<Begun>(repository: string, begin: () => Promise<Begun>, signal: AbortSignal): Promise<{ begun: Begun; code: RefreshedCode }>;
}
