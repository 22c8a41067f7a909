/** The state of the gateway for operators: processes, settlements, holds, upstreams and errors. */
import { formatNanocredits } from "../../lib/money.js";
import {
  ERRORS_SHOWN_MAX,
  type GatewayProcess as GatewayProcessShown,
  type GatewayShown,
  MODELS_SHOWN_MAX,
  PROCESSES_SHOWN_MAX,
  REFUSED_FIELDS_SHOWN_MAX,
  type RefusedField as RefusedFieldShown,
  type SetAside as SetAsideShown,
  type ShownModelCalls,
  type SpoolStatus,
} from "../../services/metrics/gateway-status.js";
import type { Traffic as TrafficShown, TrafficStep as TrafficStepShown } from "../../services/metrics/gateway-traffic.js";
import {
  MODEL_CALLS_MINUTES,
  type RecentError as RecentErrorShown,
  SETTLEMENT_SECONDS,
  type SettlementCounts,
} from "../../services/metrics/recent-activity.js";
import { TRAFFIC_MINUTES } from "../../services/metrics/recent-traffic.js";
import { builder } from "../builder.js";
import { Model } from "./models.js";
import { UsageTimes } from "./usage-lists.js";

const SettlementSeries = builder.objectRef<SettlementCounts>("SettlementSeries").implement({
  description: "The number of generations settled per second, free ones included. Each process keeps it in memory since its start.",
  fields: (t) => ({
    counts: t.intList({
      description: `Counts of the last ${SETTLEMENT_SECONDS} complete seconds, oldest first.`,
      resolve: ({ counts }) => [...counts],
    }),
    until: t.field({
      type: "DateTime",
      description: "The end of the last of these seconds.",
      resolve: ({ until }) => new Date((until + 1) * 1_000),
    }),
  }),
});

const SettlementSpool = builder.objectRef<SpoolStatus>("SettlementSpool").implement({
  description:
    "Settlements stored on disk under DATA_DIR because the database did not accept them. They are retried until they are stored.",
  fields: (t) => ({
    waiting: t.exposeInt("waiting", { description: "Settlements and releases that wait for the database to become available." }),
    waitingBytes: t.exposeFloat("waitingBytes", { description: "The size of their files in bytes, as a whole number." }),
    refused: t.exposeInt("refused", { description: "Settlements that the database refuses. `refusedSettlements` lists them." }),
    refusedBytes: t.exposeFloat("refusedBytes", { description: "The size of their files in bytes, as a whole number." }),
  }),
});

const SetAside = builder.objectRef<SetAsideShown>("SetAside").implement({
  description: "Credits set aside, for all accounts together.",
  fields: (t) => ({
    count: t.exposeInt("count", { description: "The number of holds or leases." }),
    credits: t.field({
      type: "Credits",
      description: "The total of credits.",
      resolve: ({ nanocredits }) => formatNanocredits(nanocredits),
    }),
  }),
});

const GatewayProcess = builder.objectRef<GatewayProcessShown>("GatewayProcess").implement({
  description:
    "A running gateway process. Fields that only the process itself knows are null when it runs on another machine, or is too busy to report.",
  fields: (t) => ({
    processId: t.exposeID("processId", {
      description: "The ID that the process created at its start. Leases, holds and jobs are stored under it.",
    }),
    worker: t.int({
      nullable: true,
      description: "The number of the worker, from 1. Null when there is a single process, or it is unknown.",
      resolve: ({ status }) => status?.worker ?? null,
    }),
    startedAt: t.expose("startedAt", { type: "DateTime", description: "When the process started." }),
    heardAt: t.expose("heardAt", {
      type: "DateTime",
      nullable: true,
      description: "When the process last reported to the database. Null when the database is unavailable.",
    }),
    version: t.string({ nullable: true, description: "The version of the gateway.", resolve: ({ status }) => status?.version ?? null }),
    residentBytes: t.float({
      nullable: true,
      description: "The resident memory in bytes, as a whole number.",
      resolve: ({ status }) => status?.residentBytes ?? null,
    }),
    generations: t.int({
      nullable: true,
      description: "Running generations.",
      resolve: ({ status }) => status?.generations ?? null,
    }),
    streams: t.int({
      nullable: true,
      description: "Running streamed generations and realtime sessions.",
      resolve: ({ status }) => status?.streams ?? null,
    }),
    jobs: t.int({ nullable: true, description: "Running generation jobs.", resolve: ({ status }) => status?.jobs ?? null }),
    isDatabaseAvailable: t.boolean({
      nullable: true,
      description:
        "Whether the process can reach the database. While it cannot, new requests are refused and settlements are kept on disk.",
      resolve: ({ status }) => status?.isDatabaseAvailable ?? null,
    }),
  }),
});

const RecentError = builder.objectRef<RecentErrorShown>("RecentError").implement({
  description: "A request that failed because of the gateway or an upstream. The log has the cause, under the request ID.",
  fields: (t) => ({
    at: t.expose("at", { type: "DateTime", description: "When the error was returned." }),
    code: t.exposeString("code", {
      description: "The error code that the caller received: INTERNAL_ERROR, UPSTREAM_ERROR, UPSTREAM_TIMEOUT or SERVICE_UNAVAILABLE.",
    }),
    requestId: t.exposeID("requestId", { nullable: true, description: "The request ID, as in the response and in the log." }),
    method: t.exposeString("method", { description: "The HTTP method, or WEBSOCKET for operations over a WebSocket." }),
    route: t.exposeString("route", { nullable: true, description: "The path pattern of the route. Null when no route matched." }),
    status: t.exposeInt("status", { description: "The HTTP status of the response. GraphQL returns 200 for errors of single fields." }),
    operation: t.exposeString("operation", {
      nullable: true,
      description: "The name of the GraphQL operation, or its type when it has no name. Null for REST.",
    }),
    modelId: t.exposeID("model", { nullable: true, description: "The canonical ID of the requested model. Null when there was none." }),
  }),
});

const ModelCalls = builder.objectRef<ShownModelCalls>("ModelCalls").implement({
  description: `Upstream calls of one model in the last ${MODEL_CALLS_MINUTES} minutes. Fallbacks are counted under their own model.`,
  fields: (t) => ({
    modelId: t.exposeID("modelId", { description: "The canonical ID of the called model." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model. For registered models, it includes the health of the last day. Null when the caller may not call it.",
      resolve: ({ modelId }, _args, ctx) => ctx.services.catalog.shown(ctx, modelId),
    }),
    upstreamId: t.exposeID("upstreamId", {
      nullable: true,
      description: "The name of the upstream in the configuration. Null for models that an account registered.",
    }),
    answered: t.exposeInt("answered", { description: "The number of successful calls." }),
    failed: t.exposeInt("failed", { description: "The number of failed calls, without those that failed because of the caller." }),
    errorRate: t.float({ description: "The share of failed calls.", resolve: ({ answered, failed }) => failed / (answered + failed) }),
    lastFailedAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When a call last failed. Null when none has.",
      resolve: ({ lastFailure }) => lastFailure?.at ?? null,
    }),
    lastFailure: t.string({
      nullable: true,
      description:
        "The cause of the last failure: the upstream's status as 3xx, 4xx, 429 or 5xx; network (never reached); closed (without an answer); timeout; cut; invalid-response. Null when none has failed.",
      resolve: ({ lastFailure }) => lastFailure?.reason ?? null,
    }),
  }),
});

const RefusedField = builder.objectRef<RefusedFieldShown>("RefusedField").implement({
  description:
    "A field of a request that an upstream refused. The request was sent again without it, and later requests of the model do not have it.",
  fields: (t) => ({
    upstreamId: t.exposeID("upstreamId", {
      nullable: true,
      description: "The name of the upstream in the configuration. Null for models that an account registered.",
    }),
    upstreamModel: t.exposeString("upstreamModel", {
      nullable: true,
      description: "The upstream's name of the model. Null for models that an account registered.",
    }),
    field: t.exposeString("field", {
      description:
        "The name of the field, also where messages hold it. `developer` is the role of that name, `missing reasoning_content` stands for thoughts that the upstream requires with earlier tool calls.",
    }),
    learnedAt: t.expose("learnedAt", { type: "DateTime", description: "When the upstream refused the field." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "When the upstream is sent the field again." }),
  }),
});

const TrafficStep = builder.objectRef<TrafficStepShown>("TrafficStep").implement({
  description: "The requests of one minute or hour.",
  fields: (t) => ({
    from: t.expose("from", { type: "DateTime", description: "The start of the minute or hour." }),
    requests: t.exposeInt("requests", { description: "Answered generations." }),
    clientErrors: t.exposeInt("clientErrors", { description: "Requests that failed with a status from 400 to 499." }),
    serverErrors: t.exposeInt("serverErrors", { description: "Requests that failed with a status from 500." }),
    cost: t.field({ type: "Credits", description: "The credits charged.", resolve: ({ nanocredits }) => formatNanocredits(nanocredits) }),
  }),
});

const Traffic = builder.objectRef<TrafficShown>("Traffic").implement({
  description: "Requests for generations of all accounts in a time range.",
  fields: (t) => ({
    from: t.expose("from", { type: "DateTime", description: "The start of the range." }),
    requests: t.exposeInt("requests", { description: "Answered generations." }),
    clientErrors: t.exposeInt("clientErrors", {
      description: "Requests that failed with a status from 400 to 499, those that the log left out included.",
    }),
    serverErrors: t.exposeInt("serverErrors", { description: "Requests that failed with a status from 500." }),
    cost: t.field({ type: "Credits", description: "The credits charged.", resolve: ({ nanocredits }) => formatNanocredits(nanocredits) }),
    responseTimeMs: t.expose("responseTimeMs", {
      type: UsageTimes,
      nullable: true,
      description: "Response times of answered generations. Null when there are none.",
    }),
    timeToFirstTokenMs: t.expose("timeToFirstTokenMs", {
      type: UsageTimes,
      nullable: true,
      description: "Times to the first token of streamed generations. Null when there are none.",
    }),
    steps: t.field({
      type: [TrafficStep],
      description: "The range by the minute or hour, oldest first.",
      complexity: { field: 1, multiplier: TRAFFIC_MINUTES / 10 },
      resolve: ({ steps }) => [...steps],
    }),
  }),
});

const Gateway = builder.objectRef<GatewayShown>("Gateway").implement({
  description:
    "The state of the gateway. Figures that processes keep in memory cover the gateway that answers, with all of its workers. Holds, leases and the list of processes cover all gateways on the database.",
  fields: (t) => ({
    asOf: t.expose("asOf", { type: "DateTime", description: "When the state was read." }),
    settlements: t.expose("settlements", { type: SettlementSeries, description: "Generations settled per second." }),
    lastHour: t.field({
      type: Traffic,
      nullable: true,
      description:
        "The last 60 minutes by the minute. Answered generations are those of the gateway that answers, since its start; errors are those of all gateways.",
      resolve: ({ traffic }, _args, ctx) => ctx.services.gatewayTraffic.lastHour(ctx, traffic),
    }),
    lastDay: t.field({
      type: Traffic,
      nullable: true,
      description: "The last 24 hours by the hour (UTC), of all gateways.",
      resolve: (_gateway, _args, ctx) => ctx.services.gatewayTraffic.lastDay(ctx),
    }),
    spool: t.expose("spool", { type: SettlementSpool, description: "Settlements that are not yet in the database." }),
    holds: t.field({
      type: SetAside,
      nullable: true,
      description: "Holds of running generations, except those granted from leases.",
      resolve: (_gateway, _args, ctx) => ctx.services.gatewayStatus.holds(ctx),
    }),
    leases: t.field({
      type: SetAside,
      nullable: true,
      description: "Leases of processes, from which they grant holds. They include charges that are not yet deducted from the balances.",
      resolve: (_gateway, _args, ctx) => ctx.services.gatewayStatus.leases(ctx),
    }),
    processes: t.field({
      type: [GatewayProcess],
      nullable: true,
      description: `Running processes, oldest first, at most ${PROCESSES_SHOWN_MAX}.`,
      complexity: { field: 1, multiplier: PROCESSES_SHOWN_MAX / 10 },
      resolve: ({ reported }, _args, ctx) => ctx.services.gatewayStatus.processes(ctx, reported),
    }),
    recentErrors: t.field({
      type: [RecentError],
      description: `The most recent errors, newest first, at most ${ERRORS_SHOWN_MAX}.`,
      complexity: { field: 1, multiplier: ERRORS_SHOWN_MAX / 10 },
      resolve: ({ errors }) => [...errors],
    }),
    tiers: t.stringList({
      description: "The names of the tiers that `setTier` accepts.",
      resolve: ({ tiers }) => [...tiers],
    }),
    models: t.field({
      type: [ModelCalls],
      description: `Recently called models, most failures first, at most ${MODELS_SHOWN_MAX}.`,
      complexity: { field: 1, multiplier: MODELS_SHOWN_MAX / 10 },
      resolve: ({ models }) => [...models],
    }),
    refusedFields: t.field({
      type: [RefusedField],
      description: `Fields that upstreams refused and are not sent for now, newest first, at most ${REFUSED_FIELDS_SHOWN_MAX}.`,
      complexity: { field: 1, multiplier: REFUSED_FIELDS_SHOWN_MAX / 10 },
      resolve: ({ refusedFields }) => [...refusedFields],
    }),
  }),
});

builder.queryField("gateway", (t) =>
  t.field({
    type: Gateway,
    nullable: true,
    description: "The state of the gateway. Operators only.",
    resolve: (_root, _args, ctx) => ctx.services.gatewayStatus.show(ctx),
  }),
);
