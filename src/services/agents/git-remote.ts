/**
 * Fetches the latest commit of a repository's default branch over git's smart HTTP protocol, version 0, which every host speaks
 * (gitprotocol-http, gitprotocol-pack): one GET for the commit's id, one POST for its pack. Every request passes the outbound guard,
 * redirects of the GET are checked like the first URL, and all bytes are counted. Git libraries unpack without a bound, so this is our own
 * reader (docs/decisions/repositories-read-with-bounds.md).
 */
import type { Readable } from "node:stream";
import { Agent } from "undici";
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import { withoutTrailing } from "../../lib/urls.js";
import { AGENT_SCRIPT_BYTES_MAX, REPOSITORY_ADVERTISEMENT_BYTES_MAX, REPOSITORY_REDIRECTS_MAX } from "./limits.js";
import { RepositoryError } from "./repository-error.js";

// Git's pkt-lines: four hexadecimal digits that count themselves and the content; `0000` is a flush (gitprotocol-common).

const HEADER_BYTES = 4;
const PACKET_BYTES_MAX = 65_520;
const LENGTH = /^[0-9a-f]{4}$/i;

function packet(line: string): string {
  return (Buffer.byteLength(line) + HEADER_BYTES).toString(16).padStart(HEADER_BYTES, "0") + line;
}

const FLUSH = "0000";

/** Yields the content of each packet; null is a flush. Throws a RepositoryError for anything else. */
async function* readPackets(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer | null, void> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    while (rest.length >= HEADER_BYTES) {
      const length = lengthOf(rest);
      if (length === 0) {
        yield null;
        rest = rest.subarray(HEADER_BYTES);
        continue;
      }
      if (rest.length < length) break;
      yield rest.subarray(HEADER_BYTES, length);
      rest = rest.subarray(length);
    }
  }
  if (rest.length > 0) throw malformed();
}

/** Other short lengths belong to versions of the protocol that were not requested. */
function lengthOf(bytes: Buffer): number {
  const digits = bytes.toString("latin1", 0, HEADER_BYTES);
  const length = LENGTH.test(digits) ? Number.parseInt(digits, 16) : -1;
  if (length === 0 || (length >= HEADER_BYTES && length <= PACKET_BYTES_MAX)) return length;
  throw malformed();
}

function malformed(): RepositoryError {
  return new RepositoryError("host", "The repository's host does not speak git's protocol.");
}

export interface FetchedCommit {
  readonly commitSha: string;
  /** The commit with its files, without history, and where the host can, without files that are too large. */
  readonly pack: Buffer;
}

export interface FetchBounds {
  readonly packBytesMax: number;
}

interface Advertised {
  /** The repository's address, after redirects. */
  readonly base: string;
  readonly commitSha: string;
  readonly capabilities: ReadonlySet<string>;
}

const SERVICE = "git-upload-pack";
const DISCOVERY = `/info/refs?service=${SERVICE}`;
/** Hosts answer clients named git with the protocol, and others with a page. */
const USER_AGENT = "git/2.0 (sluice)";
const FIRST_REFERENCE = /^([0-9a-f]{40}|[0-9a-f]{64}) ([^\0\n]+)\0([^\n]*)/;
/** `multi_ack_detailed` has no effect on a fresh clone, but some hosts require it. */
const WISHED_CAPABILITIES = ["multi_ack_detailed", "side-band-64k", "ofs-delta", "no-progress", "filter"];
const DATA_BAND = 1;
const ERROR_BAND = 3;

/** Rejects with a RepositoryError or an OutboundError, or with the signal's reason. */
export async function fetchLatestCommit(
  guard: OutboundGuard,
  repository: string,
  bounds: FetchBounds,
  signal: AbortSignal,
): Promise<FetchedCommit> {
  // The signal bounds the total time, as a host could send a little now and then forever.
  const agent = new Agent({ connect: guard.connect, connections: 1, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  const remote = new GitRemote(guard, agent, signal);
  try {
    const advertised = await remote.discover(repository);
    return { commitSha: advertised.commitSha, pack: await remote.fetchPack(advertised, bounds.packBytesMax) };
  } finally {
    await agent.destroy();
  }
}

class GitRemote {
  constructor(
    private readonly guard: OutboundGuard,
    private readonly agent: Agent,
    private readonly signal: AbortSignal,
  ) {}

  /** Reads the commit of HEAD, which is listed first, and not the rest. */
  async discover(repository: string): Promise<Advertised> {
    const { body, base } = await this.getAdvertisement(withoutTrailing(repository, "/"));
    try {
      let isAnnounced = false;
      for await (const bytes of readPackets(this.limited(body, REPOSITORY_ADVERTISEMENT_BYTES_MAX))) {
        const line = bytes?.toString("utf8") ?? null;
        if (!isAnnounced) {
          if (line?.trimEnd() !== `# service=${SERVICE}`) throw notGit();
          isAnnounced = true;
        } else if (line !== null) return toAdvertised(base, line);
      }
      throw notGit();
    } finally {
      body.destroy();
    }
  }

  async fetchPack({ base, commitSha, capabilities }: Advertised, bytesMax: number): Promise<Buffer> {
    const { statusCode, headers, body } = await this.request(`${base}/${SERVICE}`, {
      method: "POST",
      headers: { "content-type": `application/x-${SERVICE}-request`, accept: `application/x-${SERVICE}-result` },
      body: toRequest(commitSha, capabilities),
    });
    try {
      assertAnswer(statusCode, headers, `application/x-${SERVICE}-result`);
      return await readResult(this.limited(body, bytesMax));
    } finally {
      body.destroy();
    }
  }

  private async getAdvertisement(repository: string): Promise<{ readonly body: Readable; readonly base: string }> {
    let url = repository + DISCOVERY;
    for (let hops = 0; hops <= REPOSITORY_REDIRECTS_MAX; hops += 1) {
      const { statusCode, headers, body } = await this.request(url, {
        method: "GET",
        headers: { accept: `application/x-${SERVICE}-advertisement` },
      });
      try {
        if (statusCode < 300 || statusCode >= 400) {
          assertAnswer(statusCode, headers, `application/x-${SERVICE}-advertisement`);
          return { body, base: url.slice(0, -DISCOVERY.length) };
        }
        url = redirected(url, headers.location);
      } catch (error) {
        body.destroy();
        throw error;
      }
      body.destroy();
    }
    throw new RepositoryError("host", "The repository's host redirects too often.");
  }

  private async request(url: string, options: { method: "GET" | "POST"; headers: Record<string, string>; body?: string }) {
    const { origin, pathname, search } = this.guard.parse(url);
    const answer = await this.agent
      .request({
        ...options,
        origin,
        path: pathname + search,
        headers: { ...options.headers, "accept-encoding": "identity", "user-agent": USER_AGENT },
        signal: this.signal,
      })
      .catch((error: unknown) => {
        throw this.toProblem(error);
      });
    // The stream reports an unread body as an error, which does not matter here.
    answer.body.on("error", () => undefined);
    return answer;
  }

  /** Reports a failed or broken connection as an unknown host, unless time is up. */
  private toProblem(error: unknown): unknown {
    if (this.signal.aborted) return this.signal.reason;
    if (error instanceof OutboundError || error instanceof RepositoryError) return error;
    return new RepositoryError("host", "The repository's host is unknown, is not public, or does not answer.", error);
  }

  private async *limited(body: Readable, bytesMax: number): AsyncGenerator<Uint8Array, void> {
    let size = 0;
    try {
      for await (const chunk of body as AsyncIterable<Uint8Array>) {
        size += chunk.length;
        if (size > bytesMax) throw new RepositoryError("content", `The repository's host sends more than ${bytesMax} bytes.`);
        yield chunk;
      }
    } catch (error) {
      throw this.toProblem(error);
    }
  }
}

/** The redirect that git itself would follow: the same request at another repository address, and never from https to http. */
function redirected(from: string, location: string | string[] | undefined): string {
  const target = typeof location === "string" && URL.canParse(location, from) ? new URL(location, from) : null;
  if (target === null || !target.href.endsWith(DISCOVERY)) throw notGit();
  if (from.startsWith("https:") && target.protocol !== "https:")
    throw new RepositoryError("host", "The repository's host redirects away from https.");
  return target.href;
}

function assertAnswer(status: number, headers: Readonly<Record<string, unknown>>, contentType: string): void {
  // Hosts ask for a password when a repository does not exist or is not public.
  if ([401, 403, 404, 410].includes(status)) throw new RepositoryError("content", "There is no public repository at this URL.");
  if (status !== 200) throw new RepositoryError("host", `The repository's host answers with the status ${status}.`);
  const encoding = headers["content-encoding"] ?? "identity";
  const type = String(headers["content-type"] ?? "")
    .split(";", 1)[0]
    ?.trim()
    .toLowerCase();
  if (encoding !== "identity" || type !== contentType) throw notGit();
}

function toAdvertised(base: string, line: string): Advertised {
  const [, id = "", name, capabilities = ""] = FIRST_REFERENCE.exec(line) ?? [];
  if (name === undefined) throw notGit();
  // A default branch without a commit is not listed; the first line is then another branch, or missing.
  if (name !== "HEAD") throw new RepositoryError("content", "The repository's default branch has no commit.");
  if (id.length !== 40) throw new RepositoryError("content", "The repository names its commits by SHA-256, which is not supported.");
  return { base, commitSha: id, capabilities: new Set(capabilities.split(" ")) };
}

function toRequest(commitSha: string, capabilities: ReadonlySet<string>): string {
  if (!capabilities.has("side-band-64k")) throw notGit();
  const wished = WISHED_CAPABILITIES.filter((name) => capabilities.has(name));
  const lines = [packet(`want ${commitSha} ${wished.join(" ")}\n`)];
  if (capabilities.has("shallow")) lines.push(packet("deepen 1\n"));
  if (capabilities.has("filter")) lines.push(packet(`filter blob:limit=${AGENT_SCRIPT_BYTES_MAX + 1}\n`));
  return [...lines, FLUSH, packet("done\n")].join("");
}

/** Reads lines about shallow history, then the pack in bands: data, progress, errors. */
async function readResult(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Buffer[] = [];
  let isPack = false;
  for await (const bytes of readPackets(chunks)) {
    if (isPack) {
      if (bytes === null) break;
      if (bytes[0] === ERROR_BAND) throw new RepositoryError("host", "The repository's host could not send its latest commit.");
      if (bytes[0] === DATA_BAND) parts.push(bytes.subarray(1));
    } else if (bytes !== null) {
      const [word] = bytes.toString("latin1", 0, 16).split(/\s/, 1);
      if (word !== "shallow" && word !== "NAK") throw notGit();
      isPack = word === "NAK";
    }
  }
  return Buffer.concat(parts);
}

function notGit(): RepositoryError {
  return new RepositoryError("host", "The URL is not that of a git repository that can be fetched over HTTPS.");
}
