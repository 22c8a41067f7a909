/**
 * A probe: one cheap call of an upstream, made by whoever registers it, to see whether it would answer. Nothing of what the upstream says
 * is told, and an address that is blocked, unknown or silent is told alike: nobody explores a network with it
 * (docs/spec/community-models.md#probe).
 */
import type { RequestContext } from "../../context.js";
import { invalidInput, rateLimited } from "../../errors.js";
import type { OutboundGuard } from "../../lib/outbound-guard.js";
import { UPSTREAM_CONNECT_TIMEOUT_MS } from "../../limits.js";
import { ProviderError, type UpstreamCode } from "../../providers/provider.js";
import type { BucketRule, Counters } from "../../store/counters.js";
import { requireKeyManager } from "../access/permissions.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Upstream } from "../catalog/model.js";
import { connectUpstream, hopsOf } from "../generation/upstreams.js";
import { PROBE_INTERVAL_MS, PROBE_TIMEOUT_MS } from "./limits.js";
import { upstreamIdOf } from "./listed-model.js";
import { callCheaply } from "./probe-calls.js";
import type { TestCommunityModelInput } from "./probe-input.js";
import type { CommunityModelRepository } from "./repository.js";
import type { UpstreamUrls } from "./upstream-url.js";

export interface CommunityModelTest {
  /** It answers as a model of this modality does. */
  readonly ok: boolean;
  /** The upstream's; null when it gave none. */
  readonly status: number | null;
  /** Why, in a word of ours; null where it did not say or is not known. */
  readonly upstreamCode: UpstreamCode | null;
  /** Milliseconds to the whole answer; null without one. */
  readonly latencyMs: number | null;
  readonly message: string;
}

export interface ProbeDependencies {
  readonly modelRepository: Pick<CommunityModelRepository, "findOwned">;
  readonly catalog: Pick<Catalog, "upstream">;
  readonly urls: UpstreamUrls;
  readonly outbound: OutboundGuard;
  readonly counters: Counters;
}

interface ProbedUpstream {
  readonly upstream: Upstream;
  readonly endpoint: NonNullable<Upstream["endpoint"]>;
  readonly upstreamModel: string;
}

/** A unit is a millisecond of waiting; a probe takes all of them. */
const ONE_AT_A_TIME: BucketRule = { capacity: PROBE_INTERVAL_MS, perHour: 3_600_000 };
const TIMEOUTS = { connectMs: UPSTREAM_CONNECT_TIMEOUT_MS, idleMs: PROBE_TIMEOUT_MS, totalMs: PROBE_TIMEOUT_MS };
const UNREACHABLE = "The host of this URL is unknown, is not public, or does not answer.";
/** Pictures and videos cost money: what is asked for cannot be made, and the upstream that says so is there. */
const REFUSALS: ReadonlySet<number> = new Set([400, 415, 422]);
const MADE_MODALITIES: ReadonlySet<string> = new Set(["image", "video"]);

export class CommunityModelProbe {
  constructor(private readonly deps: ProbeDependencies) {}

  /** BAD_REQUEST for a URL that may not be asked for, NOT_FOUND for a model that is not the account's, RATE_LIMITED within 30 s of the last. */
  async test(ctx: RequestContext, input: TestCommunityModelInput): Promise<CommunityModelTest> {
    const { accountId } = requireKeyManager(ctx);
    const hops = hopsOf(ctx);
    const { upstream, endpoint, upstreamModel } =
      input.id === undefined ? this.described(input) : await this.registered(accountId, input.id);
    const waitMs = await this.deps.counters.take(ONE_AT_A_TIME, `probe:${accountId}`, PROBE_INTERVAL_MS, PROBE_INTERVAL_MS);
    if (waitMs > 0) throw rateLimited(`An account may probe once in ${PROBE_INTERVAL_MS / 1000} seconds.`, waitMs / 1000);
    const connected = connectUpstream(upstream, TIMEOUTS, this.deps.outbound);
    const calledAt = performance.now();
    try {
      await callCheaply(connected.at(hops), endpoint, upstreamModel, ctx.signal);
      return answered({ status: 200 }, calledAt, true, "The upstream answers as it should.");
    } catch (error) {
      ctx.signal.throwIfAborted();
      return describeFailure(error, calledAt, endpoint.modality);
    } finally {
      // Whatever the upstream still has to say, nobody waits for it.
      connected.close().catch(() => undefined);
    }
  }

  private described({ modality = "text", api, url, baseUrl, bearerToken, upstreamModel }: TestCommunityModelInput): ProbedUpstream {
    const isText = modality === "text";
    const address = this.deps.urls.parse((isText ? url : baseUrl) ?? "", isText ? "url" : "baseUrl");
    const endpoint = { modality, api: api ?? null };
    const upstream = { id: "probe", wireFormat: "openai-endpoint", baseUrl: address.href, apiKey: bearerToken ?? null } as const;
    return { upstream: { ...upstream, isTrusted: false, endpoint }, endpoint, upstreamModel: upstreamModel ?? "" };
  }

  /** With what it was registered with. */
  private async registered(accountId: string, id: string): Promise<ProbedUpstream> {
    const row = await this.deps.modelRepository.findOwned(accountId, id);
    if (row.url === null) throw invalidInput("This agent is run by the gateway: it has no upstream.", "id");
    this.deps.urls.parse(row.url, "id");
    const upstream = this.deps.catalog.upstream(upstreamIdOf(row));
    if (!upstream.endpoint) throw new Error(`The upstream of ${row.id} is no endpoint.`);
    return { upstream, endpoint: upstream.endpoint, upstreamModel: row.upstreamModel ?? row.name };
  }
}

function describeFailure(error: unknown, calledAt: number, modality: string): CommunityModelTest {
  if (!(error instanceof ProviderError)) throw error;
  const { kind, status, upstreamCode } = error;
  if (kind === "status" && status !== undefined) {
    const isThere = REFUSALS.has(status) && MADE_MODALITIES.has(modality);
    return answered(
      { status, upstreamCode },
      calledAt,
      isThere,
      isThere ? "The upstream is there; nothing was made." : statusMessage(status),
    );
  }
  // The gateway's own words.
  if (kind === "invalid-response" || kind === "cut") return { ...NOTHING_SAID, latencyMs: since(calledAt), message: error.message };
  return { ...NOTHING_SAID, latencyMs: null, message: UNREACHABLE };
}

function statusMessage(status: number): string {
  if (status === 401 || status === 403) return "The upstream refuses the credential.";
  if (status === 404 || status === 405) return "There is no such endpoint, or the upstream does not know the model.";
  if (status === 402 || status === 429) return "The upstream has no capacity or no credit left for this credential.";
  return status < 500 ? "The upstream refuses the request: the model or the API may be another." : "The upstream failed.";
}

const NOTHING_SAID = { ok: false, status: null, upstreamCode: null } as const;

interface Said {
  readonly status: number;
  readonly upstreamCode?: UpstreamCode | undefined;
}

function answered({ status, upstreamCode }: Said, calledAt: number, ok: boolean, message: string): CommunityModelTest {
  return { ok, status, upstreamCode: upstreamCode ?? null, latencyMs: since(calledAt), message };
}

function since(at: number): number {
  return Math.round(performance.now() - at);
}
