/** The upstreams that the catalog names, each made into a provider the first time that a model of it is called. */
import { LRUCache } from "lru-cache";
import type { RequestContext } from "../../context.js";
import { invalidInput } from "../../errors.js";
import type { OutboundGuard } from "../../lib/outbound-guard.js";
import type { ChatProvider, Provider, UpstreamTimeouts } from "../../providers/provider.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Model } from "../catalog/model.js";
import { type ConnectedUpstream, connectUpstream, hopsOf } from "./connect-upstream.js";
import { COMMUNITY_UPSTREAMS_MAX } from "./limits.js";

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

  constructor(
    private readonly catalog: Catalog,
    private readonly timeouts: UpstreamTimeouts,
    private readonly outbound: OutboundGuard,
  ) {}

  chat(ctx: Pick<RequestContext, "hops">, model: Model): ChatProvider {
    return this.serving(ctx, model, "chat");
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
    const connected = connectUpstream(upstream, this.timeouts, this.outbound);
    if (upstream.endpoint) this.registered.set(id, connected);
    else this.own.set(id, connected);
    return connected;
  }

  private letGo(upstream: ConnectedUpstream): void {
    const closing = upstream.close().finally(() => this.closing.delete(closing));
    this.closing.add(closing);
  }
}
