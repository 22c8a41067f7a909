/**
 * Repositories of code agents, at any public https git URL (docs/spec/agents.md#repositories).
 *
 * 1. The URL is judged by the outbound guard, as every request to its host is.
 * 2. The latest commit of its default branch is fetched, and what the host says of the repository is asked for beside that.
 * 3. agent.ts and what it imports of the same commit become one script.
 *
 * It all happens in memory and within bounds of time, bytes and number, and nothing of it is run.
 */
import { type AppError, invalidInput, serviceUnavailable, upstreamFailed, upstreamTimedOut } from "../../errors.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import { ownValue } from "../../lib/own-values.js";
import { toStorable } from "../../lib/storable-text.js";
import { withoutTrailing } from "../../lib/urls.js";
import { JSON_BOUNDS, MODEL_DESCRIPTION_CHARS_MAX, MODEL_NAME_CHARS_MAX, MODEL_TITLE_CHARS_MAX } from "../../limits.js";
import { AgentBundler } from "./agent-bundler.js";
import { GitFiles } from "./git-files.js";
import { type PackBounds, readPack } from "./git-pack.js";
import { type FetchBounds, fetchLatestCommit } from "./git-remote.js";
import {
  REPOSITORIES_AT_ONCE_MAX,
  REPOSITORY_DESCRIPTION_BYTES_MAX,
  REPOSITORY_DESCRIPTION_TIMEOUT_MS,
  REPOSITORY_FILE_BYTES_MAX,
  REPOSITORY_OBJECTS_MAX,
  REPOSITORY_PACK_BYTES_MAX,
  REPOSITORY_TIMEOUT_MS,
  REPOSITORY_UNPACKED_BYTES_MAX,
} from "./limits.js";
import { RepositoryError } from "./repository-error.js";

// What the host of a repository says of it: an agent's description comes from there (docs/spec/agents.md#operations).
// Only hosts whose API is known are asked.

/** Where the API of a host describes a repository, as JSON with a field `description`. By host; `path` is without slashes at its ends. */
type RepositoryHosts = Readonly<Record<string, (path: string) => string>>;

const KNOWN_HOSTS: RepositoryHosts = {
  "github.com": (path) => `https://api.github.com/repos/${path}`,
  "gitlab.com": (path) => `https://gitlab.com/api/v4/projects/${encodeURIComponent(path)}`,
  "codeberg.org": (path) => `https://codeberg.org/api/v1/repos/${path}`,
  "bitbucket.org": (path) => `https://api.bitbucket.org/2.0/repositories/${path}`,
};

/**
 * Null: it has none, or nobody knows how to ask its host. Undefined: the host did not say, which is no reason to do without the
 * repository, and rejects with nothing but the signal's reason.
 */
export async function findDescription(
  guard: OutboundGuard,
  hosts: RepositoryHosts,
  repository: URL,
  signal: AbortSignal,
): Promise<string | null | undefined> {
  const address = ownValue(hosts, repository.host);
  if (address === undefined) return null;
  try {
    const { bytes } = await guard.fetchGuarded(address(repositoryPath(repository)), {
      bytesMax: REPOSITORY_DESCRIPTION_BYTES_MAX,
      timeoutMs: REPOSITORY_DESCRIPTION_TIMEOUT_MS,
      accept: "application/json",
      signal,
    });
    const { description } = new BoundedJson(JSON_BOUNDS).parse(Buffer.from(bytes)) as { readonly description?: unknown };
    return typeof description === "string" ? cleaned(description) : null;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof OutboundError || error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}

/** `owner/name`. */
function repositoryPath({ pathname }: URL): string {
  return withoutTrailing(pathname.replace(/^\/+/, ""), "/").replace(/\.git$/i, "");
}

function cleaned(text: string): string | null {
  const plain = [
    ...toStorable(text)
      .replace(/[\p{Cc}\p{Bidi_Control}]+/gu, " ")
      .trim(),
  ];
  return plain.length === 0 ? null : plain.slice(0, MODEL_DESCRIPTION_CHARS_MAX).join("");
}

export interface RepositoriesOptions extends Partial<PackBounds & FetchBounds> {
  readonly timeoutMs?: number;
  readonly hosts?: RepositoryHosts;
}

const FIELD = "repository";

export class Repositories implements CodeRepositories {
  private readonly bundler = new AgentBundler();
  private fetched = 0;

  constructor(
    private readonly outbound: OutboundGuard,
    private readonly options: RepositoriesOptions = {},
  ) {}

  async deploy(repository: string, signal: AbortSignal): Promise<DeployedCode> {
    return this.inPlace(async () => {
      try {
        const url = this.parse(repository);
        const identity = identityOf(url);
        const code = await this.fetch(url, signal);
        return { ...identity, ...code, description: code.description ?? null };
      } catch (error) {
        throw asInputError(error);
      }
    });
  }

  async refresh<Begun>(
    repository: string,
    begin: () => Promise<Begun>,
    signal: AbortSignal,
  ): Promise<{ begun: Begun; code: RefreshedCode }> {
    return this.inPlace(async () => {
      const begun = await begin();
      try {
        return { begun, code: await this.fetch(this.parse(repository), signal) };
      } catch (error) {
        throw asHostError(error);
      }
    });
  }

  /** Each takes memory, and a connection to a host that anybody names. */
  private async inPlace<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.fetched >= REPOSITORIES_AT_ONCE_MAX) throw serviceUnavailable("Too many repositories are being fetched at this moment.");
    this.fetched += 1;
    try {
      return await work();
    } finally {
      this.fetched -= 1;
    }
  }

  private parse(repository: string): URL {
    const url = this.outbound.parse(repository);
    if (url.search !== "" || repository.includes("?")) throw new RepositoryError("url", "The URL of a repository may not hold a query.");
    return url;
  }

  private async fetch(url: URL, caller: AbortSignal): Promise<RefreshedCode> {
    const { timeoutMs = REPOSITORY_TIMEOUT_MS, packBytesMax = REPOSITORY_PACK_BYTES_MAX, hosts = KNOWN_HOSTS } = this.options;
    const late = AbortSignal.timeout(timeoutMs);
    // Ended with the rest: a host that gives no repository is not asked any longer what it says of it.
    const ending = new AbortController();
    const signal = AbortSignal.any([caller, late, ending.signal]);
    const described = findDescription(this.outbound, hosts, url, signal).catch(() => undefined);
    try {
      const { commitSha, pack } = await fetchLatestCommit(this.outbound, url.href, { packBytesMax }, signal);
      const objects = await readPack(pack, this.bounds, signal);
      const bundle = await this.bundler.bundle(new GitFiles(objects, commitSha), signal);
      return { commitSha, bundle, description: await described };
    } catch (error) {
      caller.throwIfAborted();
      if (late.aborted) throw new RepositoryError("time", `The repository's host did not give it within ${timeoutMs} ms.`, error);
      throw error;
    } finally {
      ending.abort();
    }
  }

  private get bounds(): PackBounds {
    const {
      objectsMax = REPOSITORY_OBJECTS_MAX,
      objectBytesMax = REPOSITORY_FILE_BYTES_MAX,
      unpackedBytesMax = REPOSITORY_UNPACKED_BYTES_MAX,
    } = this.options;
    return { objectsMax, objectBytesMax, unpackedBytesMax };
  }
}

/** The name of the repository, as its URL ends, made to fit what models may be called. */
export function identityOf(url: URL): Pick<DeployedCode, "name" | "title"> {
  const last = repositoryPath(url).split("/").at(-1) ?? "";
  const shown = [
    ...decoded(last)
      .replace(/[\p{Cc}\s]+/gu, " ")
      .trim(),
  ]
    .slice(0, MODEL_TITLE_CHARS_MAX)
    .join("")
    .trim();
  const name = withoutTrailing(
    decoded(last)
      .replace(/[^A-Za-z0-9._:-]+/g, "-")
      .replace(/^-+/, ""),
    "-",
  ).slice(0, MODEL_NAME_CHARS_MAX);
  if (shown === "" || name === "") throw new RepositoryError("url", "The URL does not end with the name of a repository.");
  return { name, title: shown };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Whoever names a repository is told that it is not one, whatever the reason. */
function asInputError(error: unknown): unknown {
  const known = knownProblem(error);
  return known === null ? error : invalidInput(known.message, FIELD);
}

function asHostError(error: unknown): unknown {
  const known = knownProblem(error);
  return known === null ? error : toHostError(known);
}

function toHostError({ problem, message, cause }: RepositoryError): AppError {
  if (problem === "time") return upstreamTimedOut(message, { cause });
  if (problem === "host") return upstreamFailed(message, { cause });
  return invalidInput(message);
}

/** Null: a defect, or the caller has gone. */
function knownProblem(error: unknown): RepositoryError | null {
  if (error instanceof RepositoryError) return error;
  return error instanceof OutboundError ? new RepositoryError(problemOf(error), error.message, error.cause) : null;
}

function problemOf({ problem }: OutboundError): RepositoryError["problem"] {
  if (problem === "url" || problem === "time") return problem;
  return problem === "size" ? "content" : "host";
}

// What a code agent's repository gives: the seam between the accounts' agents and the fetching of code.

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
