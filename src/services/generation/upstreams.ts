/** Providers of the catalog's upstreams, one for each key, made on its first call. */
import { LRUCache } from "lru-cache";
import type { RequestContext } from "../../context.js";
import { invalidInput } from "../../errors.js";
import { type ChatDialect, withStated } from "../../formats/openai-chat/dialect.js";
import { dialectOf } from "../../formats/openai-chat/known-dialects.js";
import { ProviderError } from "../../formats/upstream-error.js";
import type { OutboundGuard } from "../../lib/outbound-guard.js";
import type { OnUnknownWord, UnknownWords } from "../../lib/unknown-words.js";
import { HOPS_HEADER } from "../../limits.js";
import { createAiSdkProvider } from "../../providers/ai-sdk/ai-sdk.js";
import { findVendor } from "../../providers/ai-sdk/vendors.js";
import { toAnthropicAbilities, toAnthropicUpstream } from "../../providers/anthropic/anthropic.js";
import { GeminiChatProvider, toGeminiUpstream } from "../../providers/gemini/gemini.js";
import { unreachable } from "../../providers/http.js";
import { type FetchFile, OpenAiClient, type OpenAiUpstream, type UpstreamBounds } from "../../providers/openai/client.js";
import { type OpenAiEndpoint, toEndpointAbilities, toEndpointAddress } from "../../providers/openai/endpoint.js";
import { LearnedFields } from "../../providers/openai/learned-fields.js";
import { toOpenAiAbilities } from "../../providers/openai/openai.js";
import type { ChatProvider, Provider, UpstreamTimeouts } from "../../providers/provider.js";
import { createSandboxProvider } from "../../providers/sandbox/sandbox.js";
import type { Catalog } from "../catalog/catalog.js";
import { isGeminiFormat, isMessagesFormat, type Model, type SafetyFeature, type Upstream } from "../catalog/model.js";
import type { Route, RouteVendorKey } from "../catalog/route.js";
import type { GenerationTask } from "./admission.js";
import type { Candidate } from "./routing/candidate.js";

/** Unspecified: gateways that a request may pass; more mean a loop. */
export const HOPS_MAX = 3;

/** Unspecified: connected upstreams of community models; the least recently used is evicted. */
export const COMMUNITY_UPSTREAMS_MAX = 200;
/** Unspecified: connected upstreams of vendor keys; the least recently used is evicted. */
const VENDOR_KEY_UPSTREAMS_MAX = 500;
/** Unspecified: connections to each, and requests waiting for one. */
const COMMUNITY_CONNECTIONS_MAX = 64;
export const COMMUNITY_WAITING_MAX = 256;
/** Unspecified: longest idle time of a connection to one. */
const COMMUNITY_KEEP_ALIVE_MS = 15_000;
/** Unspecified: a chat of one, whole and streamed. Both are in memory until the charge. */
const COMMUNITY_ANSWER_BYTES_MAX = 16 * 1024 * 1024;
const COMMUNITY_STREAM_BYTES_MAX = 64 * 1024 * 1024;

// Makes the provider of an upstream: by wire format, and through the outbound guard unless the operator configured it.

type Abilities = Omit<Provider, "close">;

interface ConnectedUpstream {
  /** For a request that has passed that many gateways. */
  at(hops: number): Abilities;
  /** Refuses new calls, waits for running ones. */
  close(): Promise<void>;
}

const BOUNDS: UpstreamBounds = {
  pool: { connectionsMax: COMMUNITY_CONNECTIONS_MAX, waitingMax: COMMUNITY_WAITING_MAX, keepAliveMs: COMMUNITY_KEEP_ALIVE_MS },
  answerBytesMax: COMMUNITY_ANSWER_BYTES_MAX,
  streamBytesMax: COMMUNITY_STREAM_BYTES_MAX,
};

/** The number of gateways that the request has passed. Throws BAD_REQUEST beyond the limit, which means a loop. */
export function hopsOf({ hops = 0 }: Pick<RequestContext, "hops">): number {
  if (hops <= HOPS_MAX) return hops;
  throw invalidInput(
    `This request has come through more than ${HOPS_MAX} gateways: the upstream of a model leads back to where it came from.`,
    "model",
  );
}

export interface ConnectedAs extends Upstream {
  /** Fields that it refuses are remembered under this name, for the account of a vendor key; absent: under the upstream's id. */
  readonly learnsAs?: string;
}

export function connectUpstream(
  upstream: ConnectedAs,
  timeouts: UpstreamTimeouts,
  outbound: OutboundGuard,
  unknownWords?: UnknownWords,
  learnedFields = new LearnedFields(),
): ConnectedUpstream {
  const { id, wireFormat, baseUrl, apiKey, isTrusted, endpoint } = upstream;
  const onUnknownWord: OnUnknownWord = (kind, word) => unknownWords?.note(id, kind, word);
  if (wireFormat === "sandbox") return alike(createSandboxProvider());
  const fetchPublicFile: FetchFile = (url, options) => outbound.fetchGuarded(url, { ...options, timeoutMs: timeouts.totalMs });
  const isGemini = isGeminiFormat(upstream);
  const vendor = findVendor(isGemini ? "google" : wireFormat.replace(/^ai-sdk:/, ""));
  if (vendor && !isGemini)
    return alike(createAiSdkProvider({ vendor, baseUrl, apiKey, timeouts, fetchFile: fetchPublicFile, onUnknownWord }));
  const { learnsAs } = upstream;
  const learned = learnedFields.at({ id: learnsAs ?? id, isRegistered: endpoint !== undefined || learnsAs !== undefined });
  if (endpoint) {
    const reach = { apiKey, timeouts, fetchFile: fetchPublicFile, onUnknownWord, learned };
    return connectEndpoint({ url: baseUrl, ...endpoint }, reach, outbound);
  }
  const fetchFile: FetchFile = (url, options) => outbound.fetchGuarded(url, { ...options, isTrusted, timeoutMs: timeouts.totalMs });
  // Untrusted addresses are connected through the guard only, which checks each resolution.
  const connect = isTrusted ? {} : { connect: outbound.connect };
  const own: OpenAiUpstream = { baseUrl, apiKey, timeouts, fetchFile, onUnknownWord, learned, dialect: dialectAt(upstream), ...connect };
  if (vendor) {
    // Media and embeddings are the package's.
    const media = createAiSdkProvider({ vendor, baseUrl, apiKey, timeouts, fetchFile: fetchPublicFile, onUnknownWord });
    const client = new OpenAiClient(toGeminiUpstream(own));
    const chats = withHopCount(
      client,
      (hops) => hops > 0,
      (made) => ({ ...media, chat: new GeminiChatProvider(made, fetchPublicFile) }),
    );
    return { at: (hops) => chats.at(hops), close: async () => void (await Promise.all([chats.close(), media.close()])) };
  }
  if (isMessagesFormat(upstream)) {
    const client = new OpenAiClient(toAnthropicUpstream(own));
    return withHopCount(
      client,
      (hops) => hops > 0,
      (made) => toAnthropicAbilities(made, fetchPublicFile),
    );
  }
  // The operator's own upstreams get the hops header only when it is not 0.
  return withHopCount(new OpenAiClient(own), (hops) => hops > 0, toOpenAiAbilities);
}

/** That of its vendor or host, with the operator's statements. */
function dialectAt({ baseUrl, vendor, dialect: stated }: Upstream): ChatDialect {
  const known = dialectOf(new URL(baseUrl).hostname, vendor);
  return stated ? withStated(known, stated) : known;
}

function connectEndpoint(
  endpoint: OpenAiEndpoint,
  reach: Pick<OpenAiUpstream, "apiKey" | "timeouts" | "onUnknownWord" | "learned"> & { readonly fetchFile: FetchFile },
  outbound: OutboundGuard,
): ConnectedUpstream {
  assertCallable(endpoint.url, outbound);
  const upstream: OpenAiUpstream = { ...toEndpointAddress(endpoint), ...reach, connect: outbound.connect, bounds: BOUNDS };
  return withHopCount(
    new OpenAiClient(upstream),
    () => true,
    (client) => toEndpointAbilities(endpoint, client, reach.fetchFile),
  );
}

/** A forbidden address counts as one that does not answer. */
function assertCallable(url: string, outbound: OutboundGuard): void {
  try {
    outbound.parse(url);
  } catch (cause) {
    throw unreachable(cause);
  }
}

function alike({ close, ...abilities }: Provider): ConnectedUpstream {
  return { at: () => abilities, close };
}

/** One pool of connections; providers differ in the hops header. */
function withHopCount(
  client: OpenAiClient,
  isTold: (hops: number) => boolean,
  make: (client: OpenAiClient) => Abilities,
): ConnectedUpstream {
  const made = new Map<number, Abilities>();
  return {
    at: (hops) => {
      let abilities = made.get(hops);
      if (!abilities) {
        abilities = make(isTold(hops) ? client.withHeaders({ [HOPS_HEADER]: String(hops + 1) }) : client);
        made.set(hops, abilities);
      }
      return abilities;
    },
    close: () => client.close(),
  };
}

/** The upstream with its key at that place as the only one. */
function withKey(upstream: Upstream, keyIndex: number): Upstream {
  return keyIndex === 0 ? upstream : { ...upstream, apiKey: upstream.furtherApiKeys?.[keyIndex - 1] ?? null };
}

/** The generation that the agent answers. */
export interface AgentCall {
  readonly ctx: RequestContext;
  readonly generationId: string;
  /** Safety features of the generation, which also apply to the agent's generations. */
  readonly safetyFeatures: readonly SafetyFeature[];
}

/**
 * Answers chats of agents that the gateway runs, in place of an upstream, so that they are held, streamed, metered and recorded like
 * others. Only the agent's own generations cost something.
 */
export interface AgentProviders {
  /** The provider of the agent `model` for this call. `complete` and `stream` throw AppErrors and ProviderErrors. */
  chat(model: Model, call: AgentCall): ChatProvider;
  /** Nanocredits: the most that the generations of a run for this request may cost. */
  runCostMost(ctx: RequestContext): Promise<bigint>;
}

export type Ability = Exclude<keyof Provider, "close">;

export class Upstreams {
  /** The operator's by key: as many as the catalog has. */
  private readonly own = new Map<string, ConnectedUpstream>();
  /**
   * Upstreams of community models. A change makes a new one with another id, so the least recently used is evicted: its connections close
   * after their last request.
   */
  private readonly registered = new LRUCache<string, ConnectedUpstream>({
    max: COMMUNITY_UPSTREAMS_MAX,
    dispose: (upstream) => this.letGo(upstream),
  });
  /** Of vendor keys, by key and version. Bounded as those above. */
  private readonly ofVendorKeys = new LRUCache<string, ConnectedUpstream>({
    max: VENDOR_KEY_UPSTREAMS_MAX,
    dispose: (upstream) => this.letGo(upstream),
  });
  private readonly closing = new Set<Promise<void>>();
  private agents: AgentProviders | null = null;

  constructor(
    private readonly catalog: Catalog,
    private readonly timeouts: UpstreamTimeouts,
    private readonly outbound: OutboundGuard,
    private readonly unknownWords?: UnknownWords,
    private readonly learnedFields = new LearnedFields(),
  ) {}

  includeAgents(agents: AgentProviders): void {
    this.agents = agents;
  }

  /** The provider of a chat: the candidate's upstream, or its agent. Throws as `serving`. */
  chat({ request, generationId, safety }: GenerationTask, candidate: Candidate): ChatProvider {
    const { model } = candidate;
    const isRunHere = model.agentType === "prompt_agent" || model.agentType === "code_agent";
    if (!isRunHere || !this.agents) return this.serving(request, candidate, "chat");
    return this.agents.chat(model, { ctx: request, generationId, safetyFeatures: safety?.applied ?? [] });
  }

  /** Null for a model that makes no generations. */
  runCostMost(ctx: RequestContext, { agentType }: Model): Promise<bigint> | null {
    const isRunHere = agentType === "prompt_agent" || agentType === "code_agent";
    return isRunHere && this.agents ? this.agents.runCostMost(ctx) : null;
  }

  /**
   * Use the result at once. Throws BAD_REQUEST when the upstream lacks the ability, because the model is listed under the wrong modality,
   * and when the request has passed too many gateways.
   */
  serving<Name extends Ability>(
    ctx: Pick<RequestContext, "hops">,
    { model, route }: Candidate,
    ability: Name,
  ): NonNullable<Provider[Name]> {
    const offered = this.upstream(route).at(hopsOf(ctx))[ability];
    if (!offered) throw invalidInput(`The upstream of ${model.id} does not offer ${ability}.`, "model");
    return offered as NonNullable<Provider[Name]>;
  }

  async close(): Promise<void> {
    for (const upstream of this.own.values()) this.letGo(upstream);
    this.own.clear();
    this.registered.clear();
    this.ofVendorKeys.clear();
    await Promise.all(this.closing);
  }

  private upstream({ keyId, keyIndex, upstreamId, vendorKey }: Route): ConnectedUpstream {
    if (vendorKey) return this.byVendorKey(keyId, vendorKey);
    const known = this.own.get(keyId) ?? this.registered.get(keyId);
    if (known) return known;
    const upstream = withKey(this.catalog.upstream(upstreamId), keyIndex);
    const connected = connectUpstream(upstream, this.timeouts, this.outbound, this.unknownWords, this.learnedFields);
    if (upstream.endpoint) this.registered.set(keyId, connected);
    else this.own.set(keyId, connected);
    return connected;
  }

  /** At the address of the operator's upstream. Throws as a vendor that refuses the key when it cannot be opened. */
  private byVendorKey(keyId: string, { key, upstreamId }: RouteVendorKey): ConnectedUpstream {
    const known = this.ofVendorKeys.get(keyId);
    if (known) return known;
    const apiKey = key.secret();
    if (apiKey === null) throw new ProviderError("status", "The vendor key cannot be opened.", { status: 401 });
    const upstream = { ...this.catalog.upstream(upstreamId), apiKey, furtherApiKeys: undefined, learnsAs: keyId };
    const connected = connectUpstream(upstream, this.timeouts, this.outbound, this.unknownWords, this.learnedFields);
    this.ofVendorKeys.set(keyId, connected);
    return connected;
  }

  private letGo(upstream: ConnectedUpstream): void {
    const closing = upstream.close().finally(() => this.closing.delete(closing));
    this.closing.add(closing);
  }
}
