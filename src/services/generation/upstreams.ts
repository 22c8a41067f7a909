/** The upstreams that the catalog names, each made into a provider the first time that a model of it is called. */
import { invalidInput } from "../../errors.js";
import type { OutboundGuard } from "../../lib/outbound-guard.js";
import { createAiSdkProvider } from "../../providers/ai-sdk/ai-sdk.js";
import { findVendor } from "../../providers/ai-sdk/vendors.js";
import type { FetchFile } from "../../providers/openai/client.js";
import { createOpenAiProvider } from "../../providers/openai/openai.js";
import type { ChatProvider, Provider, UpstreamTimeouts } from "../../providers/provider.js";
import { createSandboxProvider } from "../../providers/sandbox/sandbox.js";
import type { Model, Upstream } from "../catalog/model.js";
import type { Catalog } from "../catalog.js";

/** What a provider may offer. */
export type Ability = Exclude<keyof Provider, "close">;

export class Upstreams {
  private readonly providers = new Map<string, Provider>();

  constructor(
    private readonly catalog: Catalog,
    private readonly timeouts: UpstreamTimeouts,
    private readonly outbound: OutboundGuard,
  ) {}

  chat(model: Model): ChatProvider {
    return this.serving(model, "chat");
  }

  /** BAD_REQUEST when the model's upstream offers no such thing: the operator listed it under the wrong modality. */
  serving<Name extends Ability>(model: Model, ability: Name): NonNullable<Provider[Name]> {
    const offered = this.provider(model.upstreamId)[ability];
    if (!offered) throw invalidInput(`The upstream of ${model.id} does not offer ${ability}.`, "model");
    return offered as NonNullable<Provider[Name]>;
  }

  async close(): Promise<void> {
    await Promise.all([...this.providers.values()].map((provider) => provider.close()));
    this.providers.clear();
  }

  private provider(upstreamId: string): Provider {
    const known = this.providers.get(upstreamId);
    if (known) return known;
    const provider = this.connect(this.catalog.upstream(upstreamId));
    this.providers.set(upstreamId, provider);
    return provider;
  }

  private connect(upstream: Upstream): Provider {
    if (upstream.wireFormat === "sandbox") return createSandboxProvider();
    const { baseUrl, apiKey, isTrusted } = upstream;
    const vendor = findVendor(upstream.wireFormat.replace(/^ai-sdk:/, ""));
    if (vendor) {
      const fetchPublicFile: FetchFile = (url, options) =>
        this.outbound.fetchGuarded(url, { ...options, timeoutMs: this.timeouts.totalMs });
      return createAiSdkProvider({ vendor, baseUrl, apiKey, timeouts: this.timeouts, fetchFile: fetchPublicFile });
    }
    const fetchFile: FetchFile = (url, options) =>
      this.outbound.fetchGuarded(url, { ...options, isTrusted, timeoutMs: this.timeouts.totalMs });
    // Whoever is not trusted is reached through the guard alone, whatever its name means by then.
    const guarded = isTrusted ? {} : { connect: this.outbound.connect };
    return createOpenAiProvider({ baseUrl, apiKey, timeouts: this.timeouts, fetchFile, ...guarded });
  }
}
