/** Sends one attempt: a POST to a user's address, through the outbound guard (docs/spec/outbound.md). */

import { createHmac, randomBytes } from "node:crypto";
import { Agent } from "undici";
import { invalidInput } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import type { SecretBox } from "../secrets/secret-box.js";
import {
  WEBHOOK_ANSWER_BYTES_MAX,
  WEBHOOK_PREVIOUS_SECRET_HOURS,
  WEBHOOK_SECRET_BYTES,
  WEBHOOK_TIMEOUT_MS,
  WEBHOOK_TRIES_PER_HOST_MAX,
} from "./limits.js";

export interface TryResult {
  /** Null: there was no answer. */
  readonly status: number | null;
  /** Reason of the failure, or null. Reveals nothing of the network in between or of the receiver's answer. */
  readonly error: string | null;
}

const KEEP_ALIVE_MS = 4_000;
const NO_ANSWER = "The host of the URL is unknown, is not public, or does not answer.";

export class WebhookSender {
  private readonly agent: Agent;

  constructor(
    private readonly outbound: OutboundGuard,
    private readonly timeoutMs: number = WEBHOOK_TIMEOUT_MS,
  ) {
    this.agent = new Agent({
      connect: outbound.connect,
      connections: WEBHOOK_TRIES_PER_HOST_MAX,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
  }

  /** Returns the normalized URL. Rejects with BAD_REQUEST when it is not allowed, or its host is not public at this moment. */
  async check(url: string): Promise<string> {
    try {
      return (await this.outbound.check(url)).href;
    } catch (error) {
      throw error instanceof OutboundError ? invalidInput(error.message, "url") : error;
    }
  }

  /** Rejects only with the signal's reason, when that is aborted. */
  async send(url: string, body: string, headers: SignedHeaders, signal: AbortSignal): Promise<TryResult> {
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(), this.timeoutMs);
    const leave = () => ending.abort();
    signal.addEventListener("abort", leave, { once: true });
    try {
      const status = await this.post(url, body, headers, ending.signal);
      return { status, error: failureOf(status) };
    } catch (error) {
      signal.throwIfAborted();
      if (ending.signal.aborted || isTimeout(error)) return { status: null, error: `No answer within ${this.timeoutMs} ms.` };
      return { status: null, error: error instanceof OutboundError && error.problem === "url" ? error.message : NO_ANSWER };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
    }
  }

  async close(): Promise<void> {
    await this.agent.destroy();
  }

  private async post(url: string, text: string, headers: SignedHeaders, signal: AbortSignal): Promise<number> {
    // Checked again: the operator may have changed the exempt hosts since it was registered.
    const { origin, pathname, search } = this.outbound.parse(url);
    const { statusCode, body } = await this.agent.request({
      origin,
      path: pathname + search,
      method: "POST",
      headers: { ...headers, "content-type": "application/json", "accept-encoding": "identity", "user-agent": "sluice-webhooks" },
      body: text,
      signal,
    });
    // The stream reports an unread body as an error, which does not matter here.
    body.on("error", () => undefined);
    await body.dump({ limit: WEBHOOK_ANSWER_BYTES_MAX, signal }).catch(() => undefined);
    return statusCode;
  }
}

function failureOf(status: number): string | null {
  if (status >= 200 && status < 300) return null;
  if (status >= 300 && status < 400) return `The URL answers a redirect (${status}), which is not followed.`;
  return `The URL answers with the status ${status}.`;
}

function isTimeout(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : "";
  return code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT";
}

// Signatures by Standard Webhooks 1.0.0: symmetric, version v1.

const SECRET_PREFIX = "whsec_";

interface SignedHeaders {
  /** The same for every attempt, so that the receiver can drop repeats. */
  readonly "webhook-id": string;
  /** Time of the attempt in whole seconds; receivers refuse old ones. */
  readonly "webhook-timestamp": string;
  /** One for each secret, separated by spaces. */
  readonly "webhook-signature": string;
}

function createWebhookSecret(): string {
  return SECRET_PREFIX + randomBytes(WEBHOOK_SECRET_BYTES).toString("base64");
}

export function signWebhook(secrets: readonly string[], message: { id: string; body: string; sentAt: Date }): SignedHeaders {
  const timestamp = String(Math.floor(message.sentAt.getTime() / 1000));
  const signed = `${message.id}.${timestamp}.${message.body}`;
  const signatures = secrets.map((secret) => `v1,${createHmac("sha256", keyOf(secret)).update(signed).digest("base64")}`);
  return { "webhook-id": message.id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
}

// Signing secrets of endpoints: created, stored encrypted, and two at once for a while after a rotation.

const HOUR_MS = 60 * 60 * 1000;
const TABLE = "webhook_endpoint";

interface SealedSecrets {
  readonly endpointId: string;
  readonly secret: Uint8Array;
  readonly previousSecret: Uint8Array | null;
  readonly previousSecretExpiresAt: Date | null;
}

export class EndpointSecrets {
  constructor(
    private readonly box: SecretBox,
    private readonly clock: Clock,
  ) {}

  /** Makes a secret: the text that its owner sees once, and the stored form. */
  create(endpointId: string): { readonly text: string; readonly sealed: Uint8Array<ArrayBuffer> } {
    const text = createWebhookSecret();
    return { text, sealed: this.box.seal(placeOf(endpointId, "secret"), text) };
  }

  /** The stored form of a replaced secret, and until when it also signs. */
  retire(endpointId: string, secret: Uint8Array): { readonly sealed: Uint8Array<ArrayBuffer>; readonly expiresAt: Date } {
    const text = this.box.open(placeOf(endpointId, "secret"), secret);
    const expiresAt = new Date(this.clock.now().getTime() + WEBHOOK_PREVIOUS_SECRET_HOURS * HOUR_MS);
    return { sealed: this.box.seal(placeOf(endpointId, "previous_secret"), text), expiresAt };
  }

  /** The secrets that sign now, the current one first. */
  open({ endpointId, secret, previousSecret, previousSecretExpiresAt }: SealedSecrets): string[] {
    const current = this.box.open(placeOf(endpointId, "secret"), secret);
    if (!previousSecret || !previousSecretExpiresAt || previousSecretExpiresAt <= this.clock.now()) return [current];
    return [current, this.box.open(placeOf(endpointId, "previous_secret"), previousSecret)];
  }
}

function placeOf(endpointId: string, column: string) {
  return { table: TABLE, rowId: endpointId, column };
}
