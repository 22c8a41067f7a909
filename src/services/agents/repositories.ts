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
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import { withoutTrailing } from "../../lib/urls.js";
import { MODEL_NAME_CHARS_MAX, MODEL_TITLE_CHARS_MAX } from "../../limits.js";
import { AgentBundler } from "./agent-bundler.js";
import type { CodeRepositories, DeployedCode, RefreshedCode } from "./code-repository.js";
import { GitFiles } from "./git-files.js";
import { type PackBounds, readPack } from "./git-pack.js";
import { type FetchBounds, fetchLatestCommit } from "./git-remote.js";
import {
  REPOSITORIES_AT_ONCE_MAX,
  REPOSITORY_FILE_BYTES_MAX,
  REPOSITORY_OBJECTS_MAX,
  REPOSITORY_PACK_BYTES_MAX,
  REPOSITORY_TIMEOUT_MS,
  REPOSITORY_UNPACKED_BYTES_MAX,
} from "./limits.js";
import { RepositoryError } from "./repository-error.js";
import { findDescription, KNOWN_HOSTS, type RepositoryHosts, repositoryPath } from "./repository-hosts.js";

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
