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

export interface CodeRepositories {
  /**
   * The latest commit of the default branch, fetched through the outbound guard and bundled; nothing of it is run. Rejects with
   * BAD_REQUEST, `param: "repository"`, when it cannot be had or holds no agent that can be bundled.
   */
  deploy(repository: string, signal: AbortSignal): Promise<DeployedCode>;
}
