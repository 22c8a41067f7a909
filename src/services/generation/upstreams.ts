/** The upstreams that the catalog names, each made into a provider the first time that a model of it is called. */
import { LRUCache } from "lru-cache";
import type { RequestContext } from "../../context.js";
import { invalidInput } from "../../errors.js";
import type { OutboundGuard } from "../../lib/outbound-guard.js";
import type { NoteUnknownWord, UnknownWords } from "../../lib/unknown-words.js";
import { HOPS_HEADER } from "../../limits.js";
import { createAiSdkProvider } from "../../providers/ai-sdk/ai-sdk.js";
import { findVendor } from "../../providers/ai-sdk/vendors.js";
import { unreachable } from "../../providers/http.js";
import { type FetchFile, OpenAiClient, type OpenAiUpstream, type UpstreamBounds } from "../../providers/openai/client.js";
import { toOpenAiAbilities } from "../../providers/openai/openai.js";
import { type OpenAiEndpoint, toEndpointAbilities, toEndpointAddress } from "../../providers/openai-endpoint/openai-endpoint.js";
import type { ChatProvider, Provider, UpstreamTimeouts } from "../../providers/provider.js";
import { createSandboxProvider } from "../../providers/sandbox/sandbox.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Model, SafetyFeature, Upstream } from "../catalog/model.js";
import type { GenerationTask } from "./admission.js";

/** Unspecified: gateways that a request may come through; one that comes back more often goes in circles. */
export const HOPS_MAX = 3;

/** Unspecified: upstreams of registered models that are connected at once; whichever was called longest ago is let go. */
export const COMMUNITY_UPSTREAMS_MAX = 200;
/** Unspecified: connections to each, and requests that wait for one. */
const COMMUNITY_CONNECTIONS_MAX = 64;
export const COMMUNITY_WAITING_MAX = 256;
/** Unspecified: how long an idle connection to one is kept at most. */
const COMMUNITY_KEEP_ALIVE_MS = 15_000;
/** Unspecified: a chat of one, answered whole and streamed. Both are in memory until they are charged. */
const COMMUNITY_ANSWER_BYTES_MAX = 16 * 1024 * 1024;
const COMMUNITY_STREAM_BYTES_MAX = 64 * 1024 * 1024;

// From an upstream of the catalog to what calls it: by its wire format, over the outbound guard unless it is the operator's.

type Abilities = Omit<Provider, "close">;

interface ConnectedUpstream {
  /** For a request that has come through that many gateways before this one. */
  at(hops: number): Abilities;
  /** Refuses new calls, waits for running ones. */
  close(): Promise<void>;
}

/** What somebody's upstream may take. */
const BOUNDS: UpstreamBounds = {
  pool: { connectionsMax: COMMUNITY_CONNECTIONS_MAX, waitingMax: COMMUNITY_WAITING_MAX, keepAliveMs: COMMUNITY_KEEP_ALIVE_MS },
  answerBytesMax: COMMUNITY_ANSWER_BYTES_MAX,
  streamBytesMax: COMMUNITY_STREAM_BYTES_MAX,
};

/** How many gateways the request has come through. BAD_REQUEST when there were so many that it must be going in circles. */
export function hopsOf({ hops = 0 }: Pick<RequestContext, "hops">): number {
  if (hops <= HOPS_MAX) return hops;
  throw invalidInput(
    `This request has come through more than ${HOPS_MAX} gateways: the upstream of a model leads back to where it came from.`,
    "model",
  );
}

export function connectUpstream(
  upstream: Upstream,
  timeouts: UpstreamTimeouts,
  outbound: OutboundGuard,
  unknownWords?: UnknownWords,
): ConnectedUpstream {
  const { id, wireFormat, baseUrl, apiKey, isTrusted, endpoint } = upstream;
  const noteUnknown: NoteUnknownWord = (kind, word) => unknownWords?.note(id, kind, word);
  if (wireFormat === "sandbox") return alike(createSandboxProvider());
  const fetchPublicFile: FetchFile = (url, options) => outbound.fetchGuarded(url, { ...options, timeoutMs: timeouts.totalMs });
  const vendor = findVendor(wireFormat.replace(/^ai-sdk:/, ""));
  if (vendor) return alike(createAiSdkProvider({ vendor, baseUrl, apiKey, timeouts, fetchFile: fetchPublicFile, noteUnknown }));
  if (endpoint)
    return connectEndpoint({ url: baseUrl, ...endpoint }, { apiKey, timeouts, fetchFile: fetchPublicFile, noteUnknown }, outbound);
  const fetchFile: FetchFile = (url, options) => outbound.fetchGuarded(url, { ...options, isTrusted, timeoutMs: timeouts.totalMs });
  // Whoever is not trusted is reached through the guard alone, whatever its name means by then.
  const own: OpenAiUpstream = { baseUrl, apiKey, timeouts, fetchFile, noteUnknown, ...(!isTrusted && { connect: outbound.connect }) };
  // The operator knows where their own upstreams are: they are told of gateways when there were some.
  return tellingHops(new OpenAiClient(own), (hops) => hops > 0, toOpenAiAbilities);
}

function connectEndpoint(
  endpoint: OpenAiEndpoint,
  reach: Pick<OpenAiUpstream, "apiKey" | "timeouts" | "noteUnknown"> & { readonly fetchFile: FetchFile },
  outbound: OutboundGuard,
): ConnectedUpstream {
  assertCallable(endpoint.url, outbound);
  const upstream: OpenAiUpstream = { ...toEndpointAddress(endpoint), ...reach, connect: outbound.connect, bounds: BOUNDS };
  return tellingHops(
    new OpenAiClient(upstream),
    () => true,
    (client) => toEndpointAbilities(endpoint, client, reach.fetchFile),
  );
}

/** An address that may not be asked for is one that does not answer, however it came to be registered. */
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

/** One set of connections; what is made over them differs in the count that it sends on. */
function tellingHops(
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

/** The generation that the agent answers. */
export interface AgentCall {
  readonly ctx: RequestContext;
  readonly generationId: string;
  /** Those that the generation went through: what the agent asks for goes through them too. */
  readonly safetyFeatures: readonly SafetyFeature[];
}

/**
 * What answers a chat when its model is an agent that the gateway runs: in the place of an upstream, so that an agent's answer is
 * held, streamed, metered and recorded like any other. Only the models that the agent asks cost something.
 */
export interface AgentProviders {
  /** The agent `model` at work on this call. Its `complete` and `stream` throw AppErrors and ProviderErrors. */
  chat(model: Model, call: AgentCall): ChatProvider;
}

/** What a provider may offer. */
export type Ability = Exclude<keyof Provider, "close">;

export class Upstreams {
  /** The operator's: as many as the catalog has. */
  private readonly own = new Map<string, ConnectedUpstream>();
  /**
   * Those that accounts have registered. A change of one is another upstream with another id, so what was called longest ago goes: its
   * connections are closed when the requests on them have ended.
   */
  private readonly registered = new LRUCache<string, ConnectedUpstream>({
    max: COMMUNITY_UPSTREAMS_MAX,
    dispose: (upstream) => this.letGo(upstream),
  });
  private readonly closing = new Set<Promise<void>>();
  private agents: AgentProviders | null = null;

  constructor(
    private readonly catalog: Catalog,
    private readonly timeouts: UpstreamTimeouts,
    private readonly outbound: OutboundGuard,
    private readonly unknownWords?: UnknownWords,
  ) {}

  /** From now on agents that the gateway runs are asked of them. */
  includeAgents(agents: AgentProviders): void {
    this.agents = agents;
  }

  /** Who answers a chat of that model: its upstream, or the agent that it is. Throws as `serving` does. */
  chat({ request, generationId, safety }: GenerationTask, model: Model): ChatProvider {
    const isRunHere = model.agentType === "prompt_agent" || model.agentType === "code_agent";
    if (!isRunHere || !this.agents) return this.serving(request, model, "chat");
    return this.agents.chat(model, { ctx: request, generationId, safetyFeatures: safety?.applied ?? [] });
  }

  /**
   * To be called at once. BAD_REQUEST when the model's upstream offers no such thing: it is listed under the wrong modality; and when
   * the request has come through so many gateways that it must be going in circles.
   */
  serving<Name extends Ability>(ctx: Pick<RequestContext, "hops">, model: Model, ability: Name): NonNullable<Provider[Name]> {
    const offered = this.upstream(model.upstreamId).at(hopsOf(ctx))[ability];
    if (!offered) throw invalidInput(`The upstream of ${model.id} does not offer ${ability}.`, "model");
    return offered as NonNullable<Provider[Name]>;
  }

  async close(): Promise<void> {
    for (const upstream of this.own.values()) this.letGo(upstream);
    this.own.clear();
    this.registered.clear();
    await Promise.all(this.closing);
  }

  private upstream(id: string): ConnectedUpstream {
    const known = this.own.get(id) ?? this.registered.get(id);
    if (known) return known;
    const upstream = this.catalog.upstream(id);
    const connected = connectUpstream(upstream, this.timeouts, this.outbound, this.unknownWords);
    if (upstream.endpoint) this.registered.set(id, connected);
    else this.own.set(id, connected);
    return connected;
  }

  private letGo(upstream: ConnectedUpstream): void {
    const closing = upstream.close().finally(() => this.closing.delete(closing));
    this.closing.add(closing);
  }
}
