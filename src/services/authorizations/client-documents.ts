/**
 * Client id metadata documents (draft-ietf-oauth-client-id-metadata-document): the client id is an address, and the document there describes
 * the client. It is fetched through the outbound guard, bounded, and cached in memory.
 */

import { LRUCache } from "lru-cache";
import type { RequestContext } from "../../context.js";
import { invalidInput, rateLimited } from "../../errors.js";
import { entriesMax } from "../../lib/bounded.js";
import { addressGroupOf } from "../../lib/client-address.js";
import type { Clock } from "../../lib/clock.js";
import { askNameServers } from "../../lib/name-servers.js";
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import { withoutTrailing } from "../../lib/urls.js";
import type { BucketRule, Counters } from "../../store/counters.js";
import { readClientDocument, type UnverifiedClient } from "./client-metadata.js";
import {
  CLIENT_DOCUMENT_BYTES_MAX,
  CLIENT_DOCUMENT_CACHE_MS,
  CLIENT_DOCUMENT_FAILURE_CACHE_MS,
  CLIENT_DOCUMENT_TIMEOUT_MS,
  CLIENT_DOCUMENTS_AT_ONCE_MAX,
  CLIENT_DOCUMENTS_BURST,
  CLIENT_DOCUMENTS_CACHED_MAX,
  CLIENT_DOCUMENTS_PER_HOUR,
} from "./limits.js";

interface Fault {
  readonly fault: string;
  /** The document did not come, so that nothing is known of the client. */
  readonly isUnreachable: boolean;
}

type Found = UnverifiedClient | Fault;

/** A document that was read, or its fault. */
interface Known {
  readonly found: Promise<Found>;
  /** Milliseconds since 1970; null: still being fetched. */
  until: number | null;
}

/** By then some of them have been read, or given up. */
const BUSY_SECONDS = 5;
const WEB_ADDRESS = /^https?:\/\//;
const PER_ADDRESS: BucketRule = { capacity: CLIENT_DOCUMENTS_BURST, perHour: CLIENT_DOCUMENTS_PER_HOUR };

export function isDocumentAddress(clientId: string): boolean {
  return WEB_ADDRESS.test(clientId);
}

export class ClientDocuments {
  private readonly outbound: OutboundGuard;
  private reading = 0;
  private readonly known = new LRUCache<string, Known>(entriesMax(CLIENT_DOCUMENTS_CACHED_MAX));

  constructor(
    outbound: OutboundGuard,
    private readonly counters: Counters,
    private readonly clock: Clock,
    /** False: the operator has switched documents off. */
    readonly isSupported: boolean,
  ) {
    // Strangers name these addresses.
    this.outbound = outbound.withResolve(askNameServers);
  }

  /**
   * Rejects with BAD_REQUEST for a document that is wrong, and RATE_LIMITED. Of one that does not come nothing is known: with `isOptional`
   * null is returned, else it is BAD_REQUEST too.
   */
  async read(ctx: RequestContext, clientId: string, isOptional: boolean): Promise<UnverifiedClient | null> {
    if (!this.isSupported) throw refused("is an address, and this gateway reads none: register the app instead");
    const url = this.parse(clientId);
    const found = await this.find(ctx, clientId, url);
    if (!("fault" in found)) return found;
    if (found.isUnreachable && isOptional) return null;
    throw refused(`is ${clientId}, but ${found.fault}`);
  }

  private async find(ctx: RequestContext, clientId: string, url: URL): Promise<Found> {
    const known = this.known.get(clientId);
    if (known && (known.until === null || known.until > this.clock.now().getTime())) return known.found;
    const wait = await this.counters.take(PER_ADDRESS, `client-document:${addressGroupOf(ctx.clientAddress)}`, 1, 1);
    if (wait > 0) throw rateLimited("Too many apps have been looked up from this address.", wait / 1000);
    if (this.reading >= CLIENT_DOCUMENTS_AT_ONCE_MAX) throw rateLimited("Too many apps are being looked up.", BUSY_SECONDS);
    this.reading += 1;
    const fetching: Known = { found: this.fetch(clientId, url), until: null };
    this.known.set(clientId, fetching);
    const found = await fetching.found;
    this.reading -= 1;
    fetching.until = this.clock.now().getTime() + ("fault" in found ? CLIENT_DOCUMENT_FAILURE_CACHE_MS : CLIENT_DOCUMENT_CACHE_MS);
    return found;
  }

  /** The draft, 3: with a path, without a fragment, credentials or dot segments. The address is compared as text, so it has one form only. */
  private parse(clientId: string): URL {
    try {
      const url = this.outbound.parse(clientId);
      if (url.href !== clientId) throw refused("is an address that is not written as browsers write it");
      if (url.pathname === "/") throw refused("is an address without a path");
      return url;
    } catch (error) {
      throw error instanceof OutboundError ? refused(`is an address that may not be read: ${withoutTrailing(error.message, ".")}`) : error;
    }
  }

  /** Not ended with the caller's request, as others wait for it too. Never rejects. */
  private async fetch(clientId: string, url: URL): Promise<Found> {
    try {
      const { bytes } = await this.outbound.fetchGuarded(clientId, {
        ...{ bytesMax: CLIENT_DOCUMENT_BYTES_MAX, timeoutMs: CLIENT_DOCUMENT_TIMEOUT_MS, accept: "application/json" },
        signal: new AbortController().signal,
      });
      const content: unknown = parseJson(bytes);
      const read = content === undefined ? "it holds no JSON" : readClientDocument(url, clientId, content);
      return typeof read === "string" ? { fault: read, isUnreachable: false } : read;
    } catch (error) {
      const isKnown = error instanceof OutboundError;
      const isUnreachable = !isKnown || error.problem === "host" || error.problem === "time";
      return { fault: `it could not be read${isKnown ? `: ${withoutTrailing(error.message, ".")}` : ""}`, isUnreachable };
    }
  }
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

function refused(fault: string): Error {
  return invalidInput(`The client ID ${fault}.`, "clientId");
}
