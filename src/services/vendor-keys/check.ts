/**
 * The check of a secret at its vendor: the list of models, or the cheapest chat where that list is open to all. A wrong key is sent first.
 * A vendor that accepts it does not look at keys, and calls by vendor keys would use the operator's machines for nothing
 * (docs/spec/vendor-keys.md#check).
 */
import { randomBytes } from "node:crypto";
import type { RequestContext } from "../../context.js";
import { invalidInput, rateLimited, upstreamFailed, wrongField } from "../../errors.js";
import { ProviderError } from "../../formats/upstream-error.js";
import type { OutboundGuard } from "../../lib/outbound-guard.js";
import { UPSTREAM_CONNECT_TIMEOUT_MS } from "../../limits.js";
import { toAnthropicUpstream } from "../../providers/anthropic/anthropic.js";
import { toGeminiUpstream } from "../../providers/gemini/gemini.js";
import { OpenAiClient, type OpenAiUpstream } from "../../providers/openai/client.js";
import type { Counters } from "../../store/counters.js";
import type { Catalog } from "../catalog/catalog.js";
import { isGeminiFormat, isMessagesFormat, type Upstream } from "../catalog/model.js";
import { connectUpstream } from "../generation/upstreams.js";
import { VENDOR_KEY_CHECK_MS, VENDOR_KEY_CHECKS } from "./limits.js";

const TIMEOUTS = { connectMs: UPSTREAM_CONNECT_TIMEOUT_MS, idleMs: VENDOR_KEY_CHECK_MS, totalMs: VENDOR_KEY_CHECK_MS };
/** Statuses of a key that the vendor does not know. */
const REFUSED: ReadonlySet<number> = new Set([401, 403]);

type Way = "models" | "chat";
type Verdict = "accepted" | "refused" | "unknown";

export interface VendorKeyCheckDependencies {
  readonly catalog: Pick<Catalog, "upstream" | "models">;
  readonly outbound: OutboundGuard;
  readonly counters: Counters;
}

export class VendorKeyCheck {
  /** By upstream: how it was seen to refuse a wrong key. As many as the operator has upstreams. */
  private readonly ways = new Map<string, Way>();

  constructor(private readonly deps: VendorKeyCheckDependencies) {}

  /**
   * Rejects with BAD_REQUEST naming `secret` for a key that the vendor refuses, and naming `vendor` for a vendor that does not look at
   * keys; with RATE_LIMITED, and with UPSTREAM_ERROR when the vendor does not answer.
   */
  async assertAccepted(ctx: RequestContext, accountId: string, vendor: string, secret: string): Promise<void> {
    const waitMs = await this.deps.counters.take(VENDOR_KEY_CHECKS, `vendor-key:${accountId}`, 1, 0);
    if (waitMs > 0) throw rateLimited("An account can check few vendor keys in an hour.", Math.ceil(waitMs / 1000));
    const upstream = this.deps.catalog.upstream(vendor);
    const way = await this.wayOf(ctx, upstream);
    const verdict = await this.judge(ctx, { ...upstream, apiKey: secret, furtherApiKeys: undefined }, way);
    if (verdict === "refused") {
      throw wrongField("secret", `${vendor} refuses this key. Copy it again from the vendor's console, and check that it is active there`);
    }
    if (verdict === "unknown") throw unanswered(vendor);
  }

  private async wayOf(ctx: RequestContext, upstream: Upstream): Promise<Way> {
    const known = this.ways.get(upstream.id);
    if (known) return known;
    const wrong = { ...upstream, apiKey: `sk-${randomBytes(24).toString("hex")}`, furtherApiKeys: undefined };
    for (const way of ["models", "chat"] as const) {
      const verdict = await this.judge(ctx, wrong, way);
      if (verdict === "refused") {
        this.ways.set(upstream.id, way);
        return way;
      }
      if (way === "chat" && verdict === "unknown") throw unanswered(upstream.id);
    }
    throw invalidInput(`${upstream.id} takes no vendor keys: it answers a wrong key too, so a key cannot be checked there.`, "vendor");
  }

  private async judge(ctx: RequestContext, upstream: Upstream, way: Way): Promise<Verdict> {
    const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(VENDOR_KEY_CHECK_MS)]);
    try {
      if (way === "models") await listModels(upstream, signal);
      else await this.chat(upstream, signal);
      return "accepted";
    } catch (error) {
      ctx.signal.throwIfAborted();
      const status = error instanceof ProviderError && error.kind === "status" ? (error.status ?? 500) : 500;
      // Some vendors answer 400 to a wrong key; the list of models has nothing else to refuse.
      if (REFUSED.has(status) || (way === "models" && status === 400)) return "refused";
      // A known key whose account has no funds, or that is called too often, is a good one; so is one whose request was read.
      const isRead = way === "chat" && (status === 400 || status === 404 || status === 422);
      return status === 402 || status === 429 || isRead ? "accepted" : "unknown";
    }
  }

  private async chat(upstream: Upstream, signal: AbortSignal): Promise<void> {
    const model = this.deps.catalog.models.find(({ modality, routes }) => modality === "text" && routes.some(isTo(upstream)));
    const route = model?.routes.find(isTo(upstream));
    if (!route) throw invalidInput(`${upstream.id} serves no text model here, with which a key could be checked.`, "vendor");
    const connected = connectUpstream(upstream, TIMEOUTS, this.deps.outbound);
    try {
      const body = { messages: [{ role: "user", content: "ping" }], max_tokens: 1 };
      await connected.at(0).chat?.complete({ upstreamModel: route.upstreamModel, body, signal });
    } finally {
      connected.close().catch(() => undefined);
    }
  }
}

function isTo({ id }: Upstream) {
  return ({ upstreamId }: { readonly upstreamId: string }) => upstreamId === id;
}

async function listModels(upstream: Upstream, signal: AbortSignal): Promise<void> {
  const client = new OpenAiClient(addressed(upstream));
  try {
    // Its status is enough.
    (await client.sendWhole({ path: "/models", method: "GET", signal })).destroy();
  } finally {
    client.close().catch(() => undefined);
  }
}

function addressed(upstream: Upstream): OpenAiUpstream {
  const plain: OpenAiUpstream = { baseUrl: upstream.baseUrl, apiKey: upstream.apiKey, timeouts: TIMEOUTS };
  if (isMessagesFormat(upstream)) return toAnthropicUpstream(plain);
  return isGeminiFormat(upstream) ? toGeminiUpstream(plain) : plain;
}

function unanswered(vendor: string): Error {
  return upstreamFailed(`${vendor} did not answer, so the key could not be checked. Nothing was stored: try again.`);
}
