/**
 * What the host of a repository says of it: an agent's description comes from there (docs/spec/agents.md#operations).
 * Only hosts whose API is known are asked.
 */
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import { ownValue } from "../../lib/own-values.js";
import { withoutTrailing } from "../../lib/urls.js";
import { MODEL_DESCRIPTION_CHARS_MAX } from "../../limits.js";
import { REPOSITORY_DESCRIPTION_BYTES_MAX, REPOSITORY_DESCRIPTION_TIMEOUT_MS } from "./limits.js";

/** Where the API of a host describes a repository, as JSON with a field `description`. By host; `path` is without slashes at its ends. */
export type RepositoryHosts = Readonly<Record<string, (path: string) => string>>;

export const KNOWN_HOSTS: RepositoryHosts = {
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
    const { description } = JSON.parse(Buffer.from(bytes).toString("utf8")) as { readonly description?: unknown };
    return typeof description === "string" ? cleaned(description) : null;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof OutboundError || error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}

/** `owner/name`. */
export function repositoryPath({ pathname }: URL): string {
  return withoutTrailing(pathname.replace(/^\/+/, ""), "/").replace(/\.git$/i, "");
}

function cleaned(text: string): string | null {
  const plain = [...text.replace(/\p{Cc}+/gu, " ").trim()];
  return plain.length === 0 ? null : plain.slice(0, MODEL_DESCRIPTION_CHARS_MAX).join("");
}
