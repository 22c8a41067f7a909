/**
 * A probe: one cheap call of an upstream by the account that registers it, to see whether it answers. The result reveals nothing of the
 * upstream's text, and does not distinguish blocked, unknown and silent addresses, so that it cannot be used to explore a network
 * (docs/spec/community-models.md#probe).
 */

import { z } from "zod";
import type { RequestContext } from "../../context.js";
import { invalidInput, rateLimited } from "../../errors.js";
import { ProviderError, type UpstreamCode } from "../../formats/upstream-error.js";
import type { OutboundGuard } from "../../lib/outbound-guard.js";
import { UPSTREAM_CONNECT_TIMEOUT_MS } from "../../limits.js";
import type { Provider } from "../../providers/provider.js";
import type { BucketRule, Counters } from "../../store/counters.js";
import { requireKeyManager } from "../access/permissions.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Upstream } from "../catalog/model.js";
import { connectUpstream, hopsOf } from "../generation/upstreams.js";
import { PROBE_INTERVAL_MS, PROBE_TIMEOUT_MS } from "./limits.js";
import { upstreamIdOf } from "./listed-model.js";
import { bearerToken, PROXY_MODALITIES, upstreamApi, upstreamModel, upstreamUrl } from "./models-input.js";
import type { CommunityModelRepository } from "./repository.js";
import type { UpstreamUrls } from "./upstream-url.js";

// The cheapest call per modality.

type Endpoint = NonNullable<Upstream["endpoint"]>;

/** The minimum of OpenAI's Responses format. */
const RESPONSES_TOKENS_MIN = 16;
/** A tenth of a second is the minimum of OpenAI's format. */
const SILENCE_SAMPLES = 1_600;
const SAMPLE_RATE = 16_000;
const SAMPLE_BYTES = 2;
const WAV_HEAD_BYTES = 44;

/** Resolves on a valid answer. Rejects as the provider does. */
async function callCheaply(
  offered: Omit<Provider, "close">,
  { api, modality }: Endpoint,
  upstreamModel: string,
  signal: AbortSignal,
): Promise<void> {
  const call = { upstreamModel, signal, extra: {} };
  const noOptions = { size: null, seed: null, negativePrompt: null, images: [] };
  switch (modality) {
    case "text": {
      const body = { messages: [{ role: "user", content: "ping" }], max_tokens: api === "responses" ? RESPONSES_TOKENS_MIN : 1 };
      await offered.chat?.complete({ upstreamModel, body, signal });
      return;
    }
    case "embedding":
      await offered.embedding?.embed({ ...call, inputs: ["ping"], isSingle: true, dimensions: null });
      return;
    case "speech": {
      const speech = await offered.speech?.stream({ ...call, input: "Hi", voice: "alloy", format: "mp3", speed: null, instructions: null });
      for await (const _ of speech?.chunks ?? []) return;
      return;
    }
    case "transcription": {
      const audio = { bytes: silence(), contentType: "audio/wav", name: "audio.wav" };
      const options = { language: null, prompt: null, temperature: null, wantsSegments: false, wantsWords: false };
      await offered.transcription?.transcribe({ ...call, ...options, audio });
      return;
    }
    // An empty prompt cannot produce an image.
    case "image": {
      const options = { prompt: "", count: 1, quality: null, isTransparent: false, format: null, reasoning: null, mask: null };
      await offered.image?.generate({ ...call, ...noOptions, ...options });
      return;
    }
    case "video": {
      const options = { prompt: "", aspectRatio: null, seconds: null, hasAudio: false, onProgress: () => undefined };
      await offered.video?.generate({ ...call, ...noOptions, ...options });
      return;
    }
    default:
      throw new Error(`Nobody registers a model of modality ${modality}.`);
  }
}

/** WAV, 16-bit mono. */
function silence(): Uint8Array {
  const dataBytes = SILENCE_SAMPLES * SAMPLE_BYTES;
  const wav = Buffer.alloc(WAV_HEAD_BYTES + dataBytes);
  wav.write("RIFF", 0, "latin1");
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write("WAVEfmt ", 8, "latin1");
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(SAMPLE_RATE, 24);
  wav.writeUInt32LE(SAMPLE_RATE * SAMPLE_BYTES, 28);
  wav.writeUInt16LE(SAMPLE_BYTES, 32);
  wav.writeUInt16LE(8 * SAMPLE_BYTES, 34);
  wav.write("data", 36, "latin1");
  wav.writeUInt32LE(dataBytes, 40);
  return wav;
}

export interface CommunityModelTest {
  /** It answers like a model of this modality. */
  readonly ok: boolean;
  /** The upstream's status; null without one. */
  readonly status: number | null;
  /** Reason from our own list; null when unknown. */
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
/** Images and videos cost money, so the request is one that cannot be fulfilled; an upstream that refuses it with these statuses works. */
const REFUSALS: ReadonlySet<number> = new Set([400, 415, 422]);
const MADE_MODALITIES: ReadonlySet<string> = new Set(["image", "video"]);

export class CommunityModelProbe {
  constructor(private readonly deps: ProbeDependencies) {}

  /**
   * Rejects with BAD_REQUEST for an address that is not allowed, NOT_FOUND for another account's model, RATE_LIMITED within 30 s of the
   * last probe.
   */
  async test(ctx: RequestContext, input: TestCommunityModelInput): Promise<CommunityModelTest> {
    const { accountId } = requireKeyManager(ctx);
    const hops = hopsOf(ctx);
    const { upstream, endpoint, upstreamModel } =
      input.id === undefined ? this.described(input) : await this.registered(accountId, input.id);
    const waitMs = await this.deps.counters.take(ONE_AT_A_TIME, `probe:${accountId}`, PROBE_INTERVAL_MS, PROBE_INTERVAL_MS);
    if (waitMs > 0) throw rateLimited(`An account can run one test every ${PROBE_INTERVAL_MS / 1000} seconds.`, waitMs / 1000);
    const connected = connectUpstream(upstream, TIMEOUTS, this.deps.outbound);
    const calledAt = performance.now();
    try {
      await callCheaply(connected.at(hops), endpoint, upstreamModel, ctx.signal);
      return answered({ status: 200 }, calledAt, true, "The upstream answers as it should.");
    } catch (error) {
      ctx.signal.throwIfAborted();
      return describeFailure(error, calledAt, endpoint.modality);
    } finally {
      // The rest of the upstream's answer is not needed.
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

  private async registered(accountId: string, id: string): Promise<ProbedUpstream> {
    const row = await this.deps.modelRepository.findOwned(accountId, id);
    if (row.url === null) throw invalidInput("The gateway runs this agent: it has no upstream.", "id");
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
  // Our own messages.
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

// The target of a probe: an upstream as for registration, or one of the account's models (docs/spec/community-models.md#probe).

/** As an object, because common generators of clients cannot read a schema that is `false`. */
const ABSENT = { not: {} };
const DESCRIBING = ["modality", "api", "url", "baseUrl", "bearerToken", "upstreamModel"] as const;

/**
 * Unspecified: `id` names a registered model and excludes other fields, because with another address the probe would send the credential
 * there. Without `id` the fields are those of a registration; the credential is optional.
 */
export const testCommunityModelInput = z
  .strictObject({
    id: z.string().min(1).optional(),
    modality: z.enum(PROXY_MODALITIES).optional(),
    api: upstreamApi.optional(),
    url: upstreamUrl.optional(),
    baseUrl: upstreamUrl.optional(),
    bearerToken: bearerToken.optional(),
    upstreamModel: upstreamModel.optional(),
  })
  .superRefine((input, issues) => {
    const isText = (input.modality ?? "text") === "text";
    const needed = isText ? (["api", "url", "upstreamModel"] as const) : (["baseUrl", "upstreamModel"] as const);
    const refused = isText ? (["baseUrl"] as const) : (["api", "url"] as const);
    const refuse = (field: string, message: string) => issues.addIssue({ code: "custom", path: [field], message, input });
    if (input.id !== undefined) {
      for (const field of DESCRIBING)
        if (input[field] !== undefined) refuse(field, "must be left out: what the registered model has is used");
      return;
    }
    for (const field of needed) if (input[field] === undefined) refuse(field, "is required");
    for (const field of refused) if (input[field] !== undefined) refuse(field, `is not used with modality ${input.modality ?? "text"}`);
  })
  // The same for the description.
  .meta({
    oneOf: [
      { required: ["id"], maxProperties: 1 },
      { required: ["api", "url", "upstreamModel"], properties: { modality: { const: "text" }, id: ABSENT, baseUrl: ABSENT } },
      {
        required: ["modality", "baseUrl", "upstreamModel"],
        properties: { modality: { not: { const: "text" } }, id: ABSENT, api: ABSENT, url: ABSENT },
      },
    ],
  });
type TestCommunityModelInput = z.output<typeof testCommunityModelInput>;
