/**
 * Dynamic client registration (RFC 7591). A registration is not stored: the client id holds it, signed, so that strangers can register as
 * many clients as they like and fill no table (docs/decisions/clients-that-register.md).
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { RequestContext } from "../../context.js";
import { rateLimited } from "../../errors.js";
import { addressGroupOf } from "../../lib/client-address.js";
import type { Clock } from "../../lib/clock.js";
import type { BucketRule, Counters } from "../../store/counters.js";
import { admitAnybody } from "../access/permissions.js";
import { type RegisterClientInput, toClientName, type UnverifiedClient } from "./client-metadata.js";
import { CLIENT_ID_CHARS_MAX, CLIENT_REGISTRATION_DAYS, CLIENT_REGISTRATIONS_BURST, CLIENT_REGISTRATIONS_PER_HOUR } from "./limits.js";

/** A new registration. */
export interface RegisteredClient extends UnverifiedClient {
  /** Seconds since 1970. */
  readonly issuedAt: number;
}

const PREFIX = "app_";
const FORM = /^app_([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/;
const SECONDS_PER_DAY = 86_400;
const PER_ADDRESS: BucketRule = { capacity: CLIENT_REGISTRATIONS_BURST, perHour: CLIENT_REGISTRATIONS_PER_HOUR };

/** The signed content: seconds since 1970, name, redirect addresses. */
type Claims = readonly [issuedAt: number, name: string | null, redirectUrls: readonly string[]];

export class ClientRegistrations {
  constructor(
    private readonly secret: Buffer,
    private readonly counters: Counters,
    private readonly clock: Clock,
  ) {}

  /** Needs no caller. Rejects with RATE_LIMITED. */
  async register(ctx: RequestContext, input: RegisterClientInput): Promise<RegisteredClient> {
    admitAnybody(ctx);
    const wait = await this.counters.take(PER_ADDRESS, `client-registration:${addressGroupOf(ctx.clientAddress)}`, 1, 1);
    if (wait > 0) throw rateLimited("Too many apps have registered from this address.", wait / 1000);
    const name = toClientName(input.client_name);
    const redirectUrls = [...new Set(input.redirect_uris)];
    const issuedAt = Math.floor(this.clock.now().getTime() / 1000);
    const content = Buffer.from(JSON.stringify([issuedAt, name, redirectUrls] satisfies Claims)).toString("base64url");
    return { id: `${PREFIX}${content}.${this.sign(content).toString("base64url")}`, name, redirectUrls, documentHost: null, issuedAt };
  }

  /** The client of an id; null for one that was not issued here, or has expired. */
  find(clientId: string): UnverifiedClient | null {
    if (clientId.length > CLIENT_ID_CHARS_MAX) return null;
    const [, content, signature] = FORM.exec(clientId) ?? [];
    if (content === undefined || signature === undefined) return null;
    if (!timingSafeEqual(Buffer.from(signature, "base64url"), this.sign(content))) return null;
    const [issuedAt, name, redirectUrls]: Claims = JSON.parse(Buffer.from(content, "base64url").toString());
    if (issuedAt + CLIENT_REGISTRATION_DAYS * SECONDS_PER_DAY <= this.clock.now().getTime() / 1000) return null;
    return { id: clientId, name, redirectUrls, documentHost: null };
  }

  private sign(content: string): Buffer {
    return createHmac("sha256", this.secret).update(content).digest();
  }
}
