/**
 * Repositories of code agents, at any public https git URL (docs/spec/agents.md#repositories).
 *
 * 1. The outbound guard checks the URL, and every request to its host.
 * 2. The latest commit of the default branch is fetched, and the repository's description beside it.
 * 3. agent.ts and its imports become one script.
 *
 * Everything happens in memory, bounded in time, bytes and number, and no code is run.
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

// Descriptions of repositories, which become those of agents (docs/spec/agents.md#operations). Only hosts with a known API are asked.

/** API address by host, of JSON with a field `description`; `path` has no slashes at its ends. */
type RepositoryHosts = Readonly<Record<string, (path: string) => string>>;

const KNOWN_HOSTS: RepositoryHosts = {
  "github.com": (path) => `https://api.github.com/repos/${path}`,
  "gitlab.com": (path) => `https://gitlab.com/api/v4/projects/${encodeURIComponent(path)}`,
  "codeberg.org": (path) => `https://codeberg.org/api/v1/repos/${path}`,
  "bitbucket.org": (path) => `https://api.bitbucket.org/2.0/repositories/${path}`,
};

/**
 * Null: the repository has none, or its host has no known API. Undefined: the host did not answer, which does not fail the deployment.
 * Rejects only with the signal's reason.
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

  /** Waits for a slot: each fetch takes memory, and a connection to a host that a user named. */
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
    // Ends with the rest: a host that gives no repository need not describe it.
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

/** The last part of the repository's URL, as a valid model name. */
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

/** Every failure of a new repository is an error of the input. */
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

/** Null: a defect, or the client has disconnected. */
function knownProblem(error: unknown): RepositoryError | null {
  if (error instanceof RepositoryError) return error;
  return error instanceof OutboundError ? new RepositoryError(problemOf(error), error.message, error.cause) : null;
}

function problemOf({ problem }: OutboundError): RepositoryError["problem"] {
  if (problem === "url" || problem === "time") return problem;
  return problem === "size" ? "content" : "host";
}

// The interface between agents and the fetching of code.

export interface DeployedCode {
  /** 40 lowercase hexadecimal digits. */
  readonly commitSha: string;
  /** One script of agent.ts and its imports. */
  readonly bundle: string;
  /** Taken from the repository; valid as a model's name, title and description. */
  readonly name: string;
  readonly title: string;
  readonly description: string | null;
}

export interface RefreshedCode extends Pick<DeployedCode, "commitSha" | "bundle"> {
  /** Undefined: the host did not answer. */
  readonly description: string | null | undefined;
}

export interface CodeRepositories {
  /**
   * Fetches the latest commit of the default branch through the outbound guard and bundles it, without running it. Rejects with
   * BAD_REQUEST, `param: "repository"`, when it cannot be fetched or has no agent that can be bundled; with SERVICE_UNAVAILABLE when too
   * many fetches are under way.
   */
  deploy(repository: string, signal: AbortSignal): Promise<DeployedCode>;
  /**
   * As `deploy`, for a repository that was deployed before: failures are its host's, UPSTREAM_ERROR or UPSTREAM_TIMEOUT. Calls `begin` once
   * there is a slot, before the request; it may refuse, and its result is returned.
   */
  refresh<Begun>(repository: string, begin: () => Promise<Begun>, signal: AbortSignal): Promise<{ begun: Begun; code: RefreshedCode }>;
}
