/**
 * Prometheus metrics (docs/operating.md). Services report finished work through the narrow methods here; work under way is read at scrape
 * time. It also keeps the activity of the last minutes for operators (recent-activity.ts).
 *
 * Labels come from closed lists: route patterns, statuses, error codes, kinds of usage, and ids of the operator's models. Community models
 * are counted together, as their owners must not be able to make series.
 */

import { createHash, timingSafeEqual } from "node:crypto";
import type { Metric, Registry } from "prom-client";
import { AppError, ERROR_CODES, unauthenticated } from "../../errors.js";
import { ProviderError, type ProviderErrorKind } from "../../formats/upstream-error.js";
import type { RequestEnd, RequestNote } from "../../lib/request-note.js";
import { UNKNOWN_WORD_KINDS, type UnknownWordKind } from "../../lib/unknown-words.js";
import { USAGE_KINDS, type UsageKind } from "../../lib/usage.js";
import type { Access } from "../access/access.js";
import { readBearer } from "../access/access.js";
import type { Model } from "../catalog/model.js";
import { meteredKinds } from "../catalog/pricing.js";
import { isCallersFault } from "../generation/failures.js";
import type { Receipt } from "../generation/receipt.js";
import { Counter, type Description, type Distribution, Gauge, Histogram, type Instrument, type Reading, type Sum } from "./instruments.js";
import { RecentErrors, RecentModelCalls, SettlementSeries } from "./recent-activity.js";
import { RecentTraffic } from "./recent-traffic.js";
import { RouteMetrics } from "./route-metrics.js";
import { type FamilyOfProcess, toText } from "./several-processes.js";

const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const OWN_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const FIRST_TOKEN_SECONDS = [0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 20, 30, 60];
const FLUSH_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const FLUSH_OPERATIONS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"]);
/** No route answered: 404, and requests that are not HTTP. */
export const UNMATCHED = "unmatched";
const COMMUNITY = "community";
const GENERATION_STATUSES: Readonly<Record<Receipt["status"], true>> = { ok: true, cancelled: true };
type UpstreamErrorReason = "3xx" | "4xx" | "429" | "5xx" | Exclude<ProviderErrorKind, "status">;
/** Reasons of a failed upstream call: its status, or the kind of error. */
const REASONS: Readonly<Record<UpstreamErrorReason, true>> = {
  ...{ "3xx": true, "4xx": true, "429": true, "5xx": true },
  ...{ network: true, closed: true, timeout: true, cut: true, "invalid-response": true },
};
/** An upstream's refusals of the gateway's own credential. */
const CREDENTIAL_STATUSES: ReadonlySet<number> = new Set([401, 402, 403]);
const MILLISECONDS = "Milliseconds";

interface ModelSums {
  readonly cost: Sum;
  readonly ok: Sum;
  readonly usage: Map<UsageKind, Sum>;
}

interface RequestSums {
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  readonly count: Sum;
  readonly seconds: Distribution;
}

export class Metrics {
  readonly settlements = new SettlementSeries();
  readonly errors = new RecentErrors();
  readonly modelCalls = new RecentModelCalls();
  readonly traffic = new RecentTraffic();
  private readonly requests = new Counter({
    name: "sluice_http_requests_total",
    help: "Requests that are over, by the pattern of their route, their method and the status that they were answered with.",
    labels: ["route", "method", "status"],
  });
  private readonly requestSeconds = new Histogram(
    {
      name: "sluice_http_request_duration_seconds",
      help: "From a request's headers to the end of its answer, the upstream's time included.",
      labels: ["route", "method"],
    },
    REQUEST_SECONDS,
  );
  private readonly refusals = new Counter({
    name: "sluice_refusals_total",
    help: "Requests that were told an error, by its code.",
    labels: ["code"],
  });
  private readonly generations = new Counter({
    name: "sluice_generations_total",
    help: "Generations that were delivered and recorded, by the model asked for and how they ended: ok, or cancelled.",
    labels: ["model", "status"],
  });
  private readonly cost = new Counter({
    name: "sluice_cost_credits_total",
    help: "Credits that were charged, by the model asked for. For display: the books are exact.",
    labels: ["model"],
  });
  private readonly tokens = new Counter({
    name: "sluice_usage_tokens_total",
    help: "Tokens that were metered, by the model asked for and their kind.",
    labels: ["model", "kind"],
  });
  private readonly seconds = new Counter({
    name: "sluice_usage_seconds_total",
    help: "Seconds of sound and film that were made, by the model asked for and their kind.",
    labels: ["model", "kind"],
  });
  private readonly ownSeconds = new Histogram(
    { name: "sluice_gateway_duration_seconds", help: "What the gateway itself took of a generation: all of its time less the upstream's." },
    OWN_SECONDS,
  );
  private readonly firstTokenSeconds = new Histogram(
    {
      name: "sluice_time_to_first_token_seconds",
      help: "From a streamed request to its first token, by the model asked for.",
      labels: ["model"],
    },
    FIRST_TOKEN_SECONDS,
  );
  private readonly upstreamErrors = new Counter({
    name: "sluice_upstream_errors_total",
    help: "Calls of upstreams that failed, by the model called and why: 3xx, 4xx, 429 or 5xx as its status, network (never connected), closed (without an answer), timeout, cut, invalid-response.",
    labels: ["model", "reason"],
  });
  private readonly credentialRefusals = new Counter({
    name: "sluice_upstream_credential_refusals_total",
    help: "Calls that an upstream refused over the gateway's credential or its account there (401, 402, 403), by the model called.",
    labels: ["model", "status"],
  });
  private readonly unknownWords = new Counter({
    name: "sluice_unknown_words_total",
    help: "Words of upstreams' and MCP servers' answers that the gateway does not know and reads past, by what they stand for. The log has each once.",
    labels: ["kind"],
  });
  private readonly refusedFields = new Counter({
    name: "sluice_upstream_refused_fields_total",
    help: "Fields that an upstream refused and is no longer sent for a day, counted when that is learned, by the upstream (community: of a registered model) and the field.",
    labels: ["upstream", "field"],
  });
  readonly routes = new RouteMetrics();
  private readonly boundedUsages = new Counter({
    name: "sluice_usage_bounded_total",
    help: "Generations whose upstream reported more usage than is plausible, so that the bound was charged, by the model called.",
    labels: ["model"],
  });
  private readonly flushSeconds = new Histogram(
    { name: "sluice_settler_flush_duration_seconds", help: "What the database took to commit a batch of holds and settlements." },
    FLUSH_SECONDS,
  );
  private readonly flushOperations = new Histogram(
    { name: "sluice_settler_flush_operations", help: "How many holds and settlements a batch had." },
    FLUSH_OPERATIONS,
  );
  private readonly writtenOffCredits = new Counter({
    name: "sluice_written_off_credits_total",
    help: "Credits of delivered answers that neither a hold, a budget nor a balance could pay.",
  });
  readonly instruments: Instrument[] = [
    ...[this.requests, this.requestSeconds, this.refusals, this.generations, this.cost, this.tokens, this.seconds],
    ...[this.ownSeconds, this.firstTokenSeconds, this.upstreamErrors, this.credentialRefusals, this.unknownWords, this.boundedUsages],
    ...[this.flushSeconds, this.flushOperations, this.writtenOffCredits, this.refusedFields, this.routes.attempts],
  ];
  /** Labels of models whose series exist. */
  private readonly foreseen = new Set<string>();
  private models: () => readonly Pick<Model, "id" | "modality">[] = () => [];
  private readonly sumsOfModels = new Map<string, ModelSums>();
  private lastRequestSums: RequestSums | null = null;
  private registry: Promise<Registry> | null = null;
  private gather: (() => Promise<readonly FamilyOfProcess[][]>) | null = null;

  /** Provides the operator's models, read at each scrape: they have series before anything is counted. */
  expect(models: () => readonly Pick<Model, "id" | "modality">[]): void {
    this.models = models;
  }

  /** Registers a gauge that is read at each scrape. */
  watch(description: Description, read: () => Reading | Promise<Reading>): void {
    this.instruments.push(new Gauge(description, read));
  }

  /** Any request, once. */
  requestOver(note: RequestNote, end: RequestEnd): void {
    const { startedAt, route, code } = note;
    const sums = this.requestSums(route, end.method, end.status);
    sums.count.value += 1;
    sums.seconds.observe((performance.now() - startedAt) / 1000);
    if (code === null) return;
    this.refusals.at(code).value += 1;
    this.errors.note(note, end);
  }

  /** Most requests are like the one before, so the last series are kept. */
  private requestSums(route: string | null, method: string, status: number): RequestSums {
    const last = this.lastRequestSums;
    if (last !== null && last.route === route && last.method === method && last.status === status) return last;
    const pattern = route ?? UNMATCHED;
    const known = METHODS.has(method) ? method : "OTHER";
    const count = this.requests.at(pattern, known, String(status));
    const sums = { route, method, status, count, seconds: this.requestSeconds.at(pattern, known) };
    this.lastRequestSums = sums;
    return sums;
  }

  /** Counts a delivered and charged generation, at a cost of 0 too; once. */
  generationOver(called: Pick<Model, "id" | "isCommunity">, receipt: Receipt): void {
    const model = labelOf(called);
    const sums = this.sumsOf(model);
    if (receipt.status === "ok") sums.ok.value += 1;
    else this.generations.at(model, receipt.status).value += 1;
    sums.cost.value += Number(receipt.costNanocredits) / 1e9;
    for (const kind of USAGE_KINDS) if (receipt.usage[kind] > 0) this.addUsage(model, sums, kind, receipt.usage[kind]);
    this.ownSeconds.at().observe(receipt.gatewayMs / 1000);
    if (receipt.firstTokenMs !== null) this.firstTokenSeconds.at(model).observe(receipt.firstTokenMs / 1000);
    this.modelCalls.answered(receipt.modelUsed);
    this.traffic.add(receipt.costNanocredits, receipt.responseMs, receipt.firstTokenMs);
  }

  /** Counts a failed upstream call; a fallback may still answer. Also counts refusals of the gateway's credential. */
  upstreamFailed(called: Pick<Model, "id" | "isCommunity">, error: unknown): void {
    const model = labelOf(called);
    if (error instanceof AppError && error.code === "UPSTREAM_TIMEOUT") {
      this.upstreamErrors.at(model, "timeout").value += 1;
      this.modelCalls.failed(called.id, "timeout");
    }
    if (!(error instanceof ProviderError)) return;
    const reason = reasonOf(error);
    this.upstreamErrors.at(model, reason).value += 1;
    if (!isCallersFault(error)) this.modelCalls.failed(called.id, reason);
    const { kind, status = 0 } = error;
    if (kind === "status" && CREDENTIAL_STATUSES.has(status)) this.credentialRefusals.at(model, String(status)).value += 1;
  }

  unknownWord(kind: UnknownWordKind): void {
    this.unknownWords.at(kind).value += 1;
  }

  fieldRefused(upstreamId: string | null, field: string): void {
    this.refusedFields.at(upstreamId ?? COMMUNITY, field).value += 1;
  }

  usageBounded(called: Pick<Model, "id" | "isCommunity">): void {
    this.boundedUsages.at(labelOf(called)).value += 1;
  }

  settled(): void {
    this.settlements.add();
  }

  /** The settler has committed a batch, or failed to. */
  flushed(operations: number, milliseconds: number): void {
    this.flushSeconds.at().observe(milliseconds / 1000);
    this.flushOperations.at().observe(operations);
  }

  writtenOff(nanocredits: bigint): void {
    this.writtenOffCredits.at().value += Number(nanocredits) / 1e9;
  }

  /** From now on `read` covers all processes: `gather` returns their families, including `readOwn` of this one. */
  readOfAll(gather: () => Promise<readonly FamilyOfProcess[][]>): void {
    this.gather = gather;
  }

  /** Everything in Prometheus's text format. Process metrics (memory, event loop, collections) are collected from the first call on. */
  async read(): Promise<string> {
    return this.gather ? toText(await this.gather()) : (await this.openedRegistry()).metrics();
  }

  /** As data, for another process to add up. */
  async readOwn(): Promise<FamilyOfProcess[]> {
    return (await this.openedRegistry()).getMetricsAsJSON();
  }

  private openedRegistry(): Promise<Registry> {
    this.foresee();
    this.registry ??= this.openRegistry();
    return this.registry;
  }

  /** Makes known series at the first read, so that Prometheus sees their first increment. */
  private foresee(): void {
    if (this.foreseen.size === 0) {
      for (const code of ERROR_CODES) this.refusals.foresee(code);
      for (const kind of UNKNOWN_WORD_KINDS) this.unknownWords.foresee(kind);
      this.refusedFields.foresee(COMMUNITY, "stream_options");
      this.routes.attempts.foresee(COMMUNITY, "ok");
      this.foreseeModel(COMMUNITY, USAGE_KINDS);
    }
    for (const { id, modality } of this.models()) if (!this.foreseen.has(id)) this.foreseeModel(id, meteredKinds(modality));
  }

  private foreseeModel(model: string, kinds: readonly UsageKind[]): void {
    this.foreseen.add(model);
    this.cost.foresee(model);
    this.boundedUsages.foresee(model);
    for (const status of Object.keys(GENERATION_STATUSES)) this.generations.foresee(model, status);
    for (const kind of kinds) this.usageCounter(kind).foresee(model, kindLabel(kind));
    for (const reason of Object.keys(REASONS)) this.upstreamErrors.foresee(model, reason);
    for (const status of CREDENTIAL_STATUSES) this.credentialRefusals.foresee(model, String(status));
  }

  private usageCounter(kind: UsageKind): Counter {
    return isTime(kind) ? this.seconds : this.tokens;
  }

  /** Loaded on first use: it takes a good part of a start. */
  private async openRegistry(): Promise<Registry> {
    // As one value: a CommonJS package in a bundle has no named exports.
    const { default: prometheus } = await import("prom-client");
    const { collectDefaultMetrics, Registry } = prometheus;
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    // A registry only asks a metric for its name and values.
    for (const instrument of this.instruments) registry.registerMetric(instrument as unknown as Metric);
    return registry;
  }

  private sumsOf(model: string): ModelSums {
    let sums = this.sumsOfModels.get(model);
    if (!sums) {
      sums = { cost: this.cost.at(model), ok: this.generations.at(model, "ok"), usage: new Map() };
      this.sumsOfModels.set(model, sums);
    }
    return sums;
  }

  private addUsage(model: string, { usage }: ModelSums, kind: UsageKind, amount: number): void {
    let sum = usage.get(kind);
    if (!sum) {
      sum = this.usageCounter(kind).at(model, kindLabel(kind));
      usage.set(kind, sum);
    }
    sum.value += isTime(kind) ? amount / 1000 : amount;
  }
}

/** The canonical ids of the operator's models; community models have names chosen by accounts. */
function labelOf({ id, isCommunity }: Pick<Model, "id" | "isCommunity">): string {
  return isCommunity ? COMMUNITY : id;
}

function isTime(kind: UsageKind): boolean {
  return kind.endsWith(MILLISECONDS);
}

/** `inputTextTokens` to `input_text`. */
function kindLabel(kind: UsageKind): string {
  return kind.replace(/(?:Tokens|Milliseconds)$/, "").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function reasonOf({ kind, status = 500 }: ProviderError): UpstreamErrorReason {
  if (kind !== "status") return kind;
  if (status === 429) return "429";
  if (status >= 300 && status < 400) return "3xx";
  return status >= 400 && status < 500 ? "4xx" : "5xx";
}

// Access to metrics: by the operator's token, or without one only from this machine.

export interface MetricsSettings {
  /** Null: none is set. */
  readonly token: string | null;
  /** No token is needed. */
  readonly isOpen: boolean;
}

export class MetricsReport {
  constructor(
    private readonly metrics: Pick<Metrics, "read">,
    private readonly settings: MetricsSettings,
    private readonly access: Pick<Access, "authenticate">,
  ) {}

  /**
   * In Prometheus's text format. Rejects with UNAUTHORIZED, RATE_LIMITED for repeated wrong tokens, and NOT_FOUND where metrics cannot be
   * read.
   */
  async read(authorization: string | undefined, clientAddress: string): Promise<string> {
    const { token, isOpen } = this.settings;
    if (!isOpen && (token === null || !isToken(authorization, token))) {
      // Counted as a wrong key is.
      await this.access.authenticate(null, clientAddress);
      throw refusalOf(token, authorization);
    }
    return this.metrics.read();
  }
}

function refusalOf(token: string | null, authorization: string | undefined): AppError {
  if (token === null) return new AppError("NOT_FOUND", "This gateway shows no metrics: its operator has not set METRICS_TOKEN.");
  if (authorization === undefined)
    return unauthenticated("Metrics are read with the gateway's METRICS_TOKEN: Authorization: Bearer <token>.");
  return unauthenticated("This is not the gateway's METRICS_TOKEN. API keys do not read metrics.");
}

/** Compares hashes in constant time, so that the duration reveals nothing about the token. */
function isToken(authorization: string | undefined, token: string): boolean {
  if (authorization === undefined) return false;
  const sent = createHash("sha256").update(readBearer(authorization)).digest();
  return timingSafeEqual(sent, createHash("sha256").update(token).digest());
}
