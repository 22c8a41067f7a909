/** From an upstream of the catalog to what calls it: by its wire format, over the outbound guard unless it is the operator's. */
import type { RequestContext } from "../../context.js";
import { invalidInput } from "../../errors.js";
import { HOPS_HEADER } from "../../lib/hops.js";
import type { OutboundGuard } from "../../lib/outbound-guard.js";
import { createAiSdkProvider } from "../../providers/ai-sdk/ai-sdk.js";
import { findVendor } from "../../providers/ai-sdk/vendors.js";
import { unreachable } from "../../providers/http.js";
import { type FetchFile, OpenAiClient, type OpenAiUpstream, type UpstreamBounds } from "../../providers/openai/client.js";
import { toOpenAiAbilities } from "../../providers/openai/openai.js";
import { type OpenAiEndpoint, toEndpointAbilities, toEndpointAddress } from "../../providers/openai-endpoint/openai-endpoint.js";
import type { Provider, UpstreamTimeouts } from "../../providers/provider.js";
import { createSandboxProvider } from "../../providers/sandbox/sandbox.js";
import type { Upstream } from "../catalog/model.js";
import {
  COMMUNITY_ANSWER_BYTES_MAX,
  COMMUNITY_CONNECTIONS_MAX,
  COMMUNITY_KEEP_ALIVE_MS,
  COMMUNITY_STREAM_BYTES_MAX,
  COMMUNITY_WAITING_MAX,
  HOPS_MAX,
} from "./limits.js";

type Abilities = Omit<Provider, "close">;

export interface ConnectedUpstream {
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

export function connectUpstream(upstream: Upstream, timeouts: UpstreamTimeouts, outbound: OutboundGuard): ConnectedUpstream {
  const { wireFormat, baseUrl, apiKey, isTrusted, endpoint } = upstream;
  if (wireFormat === "sandbox") return alike(createSandboxProvider());
  const fetchPublicFile: FetchFile = (url, options) => outbound.fetchGuarded(url, { ...options, timeoutMs: timeouts.totalMs });
  const vendor = findVendor(wireFormat.replace(/^ai-sdk:/, ""));
  if (vendor) return alike(createAiSdkProvider({ vendor, baseUrl, apiKey, timeouts, fetchFile: fetchPublicFile }));
  if (endpoint) return connectEndpoint({ url: baseUrl, ...endpoint }, { apiKey, timeouts, fetchFile: fetchPublicFile }, outbound);
  const fetchFile: FetchFile = (url, options) => outbound.fetchGuarded(url, { ...options, isTrusted, timeoutMs: timeouts.totalMs });
  // Whoever is not trusted is reached through the guard alone, whatever its name means by then.
  const own: OpenAiUpstream = { baseUrl, apiKey, timeouts, fetchFile, ...(!isTrusted && { connect: outbound.connect }) };
  // The operator knows where their own upstreams are: they are told of gateways when there were some.
  return tellingHops(new OpenAiClient(own), (hops) => hops > 0, toOpenAiAbilities);
}

function connectEndpoint(
  endpoint: OpenAiEndpoint,
  reach: Pick<OpenAiUpstream, "apiKey" | "timeouts"> & { readonly fetchFile: FetchFile },
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
