/** One call of a vendor's package: loads it, gives it our `fetch`, and translates its errors. */
import type { SharedV3Warning } from "@ai-sdk/provider";
import { redactSecrets } from "../../formats/openai-chat/errors.js";
import type { OnUnknownNames } from "../../formats/openai-chat/usage.js";
import { ownValue } from "../../lib/own-values.js";
import type { OnUnknownWord, UnknownWordKind } from "../../lib/unknown-words.js";
import { UPSTREAM_BODY_BYTES_MAX, UPSTREAM_STREAM_BYTES_MAX } from "../../limits.js";
import type { FetchFile } from "../openai/client.js";
import type { UpstreamTimeouts } from "../provider.js";
import { toError } from "./errors.js";
import { type FetchSession, UpstreamFetch } from "./fetch.js";
import { withKnownWords } from "./job-words.js";
import type { Vendor, VendorModels } from "./vendor.js";

export interface AiSdkUpstream {
  readonly vendor: Vendor;
  /** Replaces the vendor's own address. */
  readonly baseUrl: string;
  /** Null sends an empty key: a proxy may have one. */
  readonly apiKey: string | null;
  readonly timeouts: UpstreamTimeouts;
  /** Fetches files by URL for a client or an answer: public addresses only. */
  readonly fetchFile: FetchFile;
  readonly onUnknownWord?: OnUnknownWord | undefined;
}

export class AiSdkClient {
  readonly vendor: Vendor;
  readonly apiKey: string | null;
  readonly fetchFile: FetchFile;
  private readonly upstreamFetch: UpstreamFetch;

  constructor(private readonly upstream: AiSdkUpstream) {
    this.vendor = upstream.vendor;
    this.apiKey = upstream.apiKey;
    this.fetchFile = upstream.fetchFile;
    this.upstreamFetch = new UpstreamFetch({
      baseUrl: upstream.baseUrl,
      vendorUrls: upstream.vendor.baseUrls,
      timeouts: upstream.timeouts,
      fetchFile: upstream.fetchFile,
    });
  }

  /** Runs `work` to its end. An abort ends the wait at once, even if the package ignores the signal. */
  async call<Result>(
    signal: AbortSignal,
    work: (models: VendorModels, session: FetchSession) => Promise<Result>,
    bytesMax = UPSTREAM_BODY_BYTES_MAX,
  ): Promise<Result> {
    const session = this.upstreamFetch.begin(signal, { isStreamed: false, bytesMax });
    try {
      return await this.run(session, work);
    } finally {
      session.end();
    }
  }

  /** As `call`, but the receiver of the result ends the session. */
  async open<Result>(signal: AbortSignal, work: (models: VendorModels, session: FetchSession) => Promise<Result>): Promise<Result> {
    const session = this.upstreamFetch.begin(signal, { isStreamed: true, bytesMax: UPSTREAM_STREAM_BYTES_MAX });
    try {
      return await this.run(session, work);
    } catch (error) {
      session.end();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.upstreamFetch.close();
  }

  readonly onUnknownUsage: OnUnknownNames = (names) => {
    for (const name of names) this.onUnknownWord("usage-name", name);
  };

  private onUnknownWord(kind: UnknownWordKind, word: string): void {
    this.upstream.onUnknownWord?.(kind, redactSecrets(word, this.apiKey));
  }

  private async run<Result>(
    session: FetchSession,
    work: (models: VendorModels, session: FetchSession) => Promise<Result>,
  ): Promise<Result> {
    const { signal } = session;
    signal.throwIfAborted();
    let onAbort = () => {};
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
    });
    const { jobs } = this.vendor;
    const fetch = jobs ? withKnownWords(session.fetch, jobs, (kind, word) => this.onUnknownWord(kind, word)) : session.fetch;
    const settings = { apiKey: this.apiKey ?? "", fetch };
    try {
      return await Promise.race([this.vendor.load(settings).then((models) => work(models, session)), aborted]);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw toError(error, this.apiKey, session.hasSent);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}

/** A package's warnings, one sentence each. */
export function toWarnings(warnings: readonly SharedV3Warning[]): string[] {
  return warnings.map((warning) => {
    if (warning.type === "other") return warning.message;
    const details = warning.details ?? (warning.type === "unsupported" ? "the upstream has no such option." : "it is only approximated.");
    return `${warning.feature}: ${details}`;
  });
}

/** The client's own fields for the vendor, from a body's `provider_options.<vendor>`. */
export function statedOptions(body: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const all = body.provider_options ?? body.providerOptions;
  const own = isObject(all) ? ownValue(all, name) : undefined;
  return isObject(own) ? own : {};
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
