/** How the gateway does now, for operators: its processes, settlements, what is set aside, upstreams and errors. */
import { formatNanocredits } from "../../lib/money.js";
import {
  ERRORS_SHOWN_MAX,
  type GatewayProcess as GatewayProcessShown,
  type GatewayShown,
  MODELS_SHOWN_MAX,
  PROCESSES_SHOWN_MAX,
  type SetAside as SetAsideShown,
  type ShownModelCalls,
  type SpoolStatus,
} from "../../services/metrics/gateway-status.js";
import {
  MODEL_CALLS_MINUTES,
  type RecentError as RecentErrorShown,
  SETTLEMENT_SECONDS,
  type SettlementCounts,
} from "../../services/metrics/recent-activity.js";
import { builder } from "../builder.js";
import { Model } from "./models.js";

const SettlementSeries = builder.objectRef<SettlementCounts>("SettlementSeries").implement({
  description: "How many generations were settled of late, free ones included. Kept in memory by each process since its start.",
  fields: (t) => ({
    counts: t.intList({
      description: `Of each of the last ${SETTLEMENT_SECONDS} seconds that are over, the oldest first.`,
      resolve: ({ counts }) => [...counts],
    }),
    until: t.field({
      type: "DateTime",
      description: "When the last of these seconds ended.",
      resolve: ({ until }) => new Date((until + 1) * 1_000),
    }),
  }),
});

const SettlementSpool = builder.objectRef<SpoolStatus>("SettlementSpool").implement({
  description: "What is kept on the disk below DATA_DIR because the database did not take it. It is tried again until it is booked.",
  fields: (t) => ({
    waiting: t.exposeInt("waiting", { description: "Settlements and releases that wait for the database to come back." }),
    waitingBytes: t.exposeFloat("waitingBytes", { description: "The bytes of the files of those settlements: a whole number." }),
    refused: t.exposeInt("refused", { description: "Settlements that the database refuses: `refusedSettlements` shows them." }),
    refusedBytes: t.exposeFloat("refusedBytes", { description: "The bytes of the files of those: a whole number." }),
  }),
});

const SetAside = builder.objectRef<SetAsideShown>("SetAside").implement({
  description: "Credits that are set aside, of all accounts.",
  fields: (t) => ({
    count: t.exposeInt("count", { description: "How many times something is." }),
    credits: t.field({ type: "Credits", description: "How much in all.", resolve: ({ nanocredits }) => formatNanocredits(nanocredits) }),
  }),
});

const GatewayProcess = builder.objectRef<GatewayProcessShown>("GatewayProcess").implement({
  description:
    "A process of the gateway that runs. What a process alone knows of itself is null where it is another machine's, or too busy to tell.",
  fields: (t) => ({
    processId: t.exposeID("processId", { description: "Made at its start; leases, holds and jobs are kept under it." }),
    worker: t.int({
      nullable: true,
      description: "Which of several workers it is, from 1. Null: there is one, or it is not known.",
      resolve: ({ status }) => status?.worker ?? null,
    }),
    startedAt: t.expose("startedAt", { type: "DateTime", description: "Since when it runs." }),
    heardAt: t.expose("heardAt", {
      type: "DateTime",
      nullable: true,
      description: "When it last told the database that it lives. Null: the database cannot be asked.",
    }),
    version: t.string({ nullable: true, description: "Of the gateway.", resolve: ({ status }) => status?.version ?? null }),
    residentBytes: t.float({
      nullable: true,
      description: "The memory that it occupies, in bytes: a whole number.",
      resolve: ({ status }) => status?.residentBytes ?? null,
    }),
    generations: t.int({
      nullable: true,
      description: "Generations under way.",
      resolve: ({ status }) => status?.generations ?? null,
    }),
    streams: t.int({
      nullable: true,
      description: "Those of them that are streamed, and realtime sessions.",
      resolve: ({ status }) => status?.streams ?? null,
    }),
    jobs: t.int({ nullable: true, description: "Generation jobs under way.", resolve: ({ status }) => status?.jobs ?? null }),
    isDatabaseAvailable: t.boolean({
      nullable: true,
      description: "Whether the database answers it. While it does not, new work is refused, and settlements are kept.",
      resolve: ({ status }) => status?.isDatabaseAvailable ?? null,
    }),
  }),
});

const RecentError = builder.objectRef<RecentErrorShown>("RecentError").implement({
  description:
    "A request that failed by the gateway's doing, or that of those whom it asks. What went wrong is in the log, under the id of the request.",
  fields: (t) => ({
    at: t.expose("at", { type: "DateTime", description: "When it was answered." }),
    code: t.exposeString("code", {
      description: "What its caller was told: INTERNAL_ERROR, UPSTREAM_ERROR, UPSTREAM_TIMEOUT or SERVICE_UNAVAILABLE.",
    }),
    requestId: t.exposeID("requestId", { nullable: true, description: "The id of the request, as its answer and the log show it." }),
    method: t.exposeString("method", { description: "Of HTTP; WEBSOCKET for what came over one." }),
    route: t.exposeString("route", { nullable: true, description: "The pattern of the path that was asked. Null: none." }),
    status: t.exposeInt("status", { description: "Of the answer over HTTP. GraphQL answers errors of single fields with 200." }),
    operation: t.exposeString("operation", {
      nullable: true,
      description: "The name of the GraphQL operation, or else its kind. Null: it was none.",
    }),
    modelId: t.exposeID("model", { nullable: true, description: "The canonical id of the model that was asked for. Null: none was." }),
  }),
});

const ModelCalls = builder.objectRef<ShownModelCalls>("ModelCalls").implement({
  description: `How the calls of one model's upstream went in the last ${MODEL_CALLS_MINUTES} minutes, fallbacks counted for themselves.`,
  fields: (t) => ({
    modelId: t.exposeID("modelId", { description: "The canonical id of the model that was called." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model, with its health of a day where an account has registered it. Null: it is not the caller's to call.",
      resolve: ({ modelId }, _args, ctx) => ctx.services.catalog.shown(ctx, modelId),
    }),
    upstreamId: t.exposeID("upstreamId", {
      nullable: true,
      description: "The upstream, as the gateway's configuration names it. Null: an account has registered the model.",
    }),
    answered: t.exposeInt("answered", { description: "Generations that it answered." }),
    failed: t.exposeInt("failed", { description: "Calls that failed by no fault of the caller's." }),
    errorRate: t.float({ description: "Failed ones of all.", resolve: ({ answered, failed }) => failed / (answered + failed) }),
    lastFailedAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When one last failed. Null: none has.",
      resolve: ({ lastFailure }) => lastFailure?.at ?? null,
    }),
    lastFailure: t.string({
      nullable: true,
      description:
        "Why: the upstream's status as 3xx, 4xx, 429 or 5xx; network, when it was never reached; closed, without an answer; timeout; cut; invalid-response. Null: none has failed.",
      resolve: ({ lastFailure }) => lastFailure?.reason ?? null,
    }),
  }),
});

const Gateway = builder.objectRef<GatewayShown>("Gateway").implement({
  description:
    "How the gateway does now. What its processes keep in memory is told of the gateway that answers, with all of its workers; holds, leases and the list of processes are of every gateway on the database.",
  fields: (t) => ({
    asOf: t.expose("asOf", { type: "DateTime", description: "When it was asked." }),
    settlements: t.expose("settlements", { type: SettlementSeries, description: "How many generations were settled, by the second." }),
    spool: t.expose("spool", { type: SettlementSpool, description: "What the database has yet to take." }),
    holds: t.field({
      type: SetAside,
      nullable: true,
      description: "Of generations under way, but for those that leases pay for.",
      resolve: (_gateway, _args, ctx) => ctx.services.gatewayStatus.holds(ctx),
    }),
    leases: t.field({
      type: SetAside,
      nullable: true,
      description: "What processes have set aside to grant holds out of, with what was paid of it and is not yet in the balances.",
      resolve: (_gateway, _args, ctx) => ctx.services.gatewayStatus.leases(ctx),
    }),
    processes: t.field({
      type: [GatewayProcess],
      nullable: true,
      description: `Those that run, the oldest first, at most ${PROCESSES_SHOWN_MAX}.`,
      complexity: { field: 1, multiplier: PROCESSES_SHOWN_MAX / 10 },
      resolve: ({ reported }, _args, ctx) => ctx.services.gatewayStatus.processes(ctx, reported),
    }),
    recentErrors: t.field({
      type: [RecentError],
      description: `The last that were told, the newest first, at most ${ERRORS_SHOWN_MAX}.`,
      complexity: { field: 1, multiplier: ERRORS_SHOWN_MAX / 10 },
      resolve: ({ errors }) => [...errors],
    }),
    tiers: t.stringList({
      description: "The names of the tiers that accounts can be given: see `setTier`.",
      resolve: ({ tiers }) => [...tiers],
    }),
    models: t.field({
      type: [ModelCalls],
      description: `The models that were called of late, those that failed most first, at most ${MODELS_SHOWN_MAX}.`,
      complexity: { field: 1, multiplier: MODELS_SHOWN_MAX / 10 },
      resolve: ({ models }) => [...models],
    }),
  }),
});

builder.queryField("gateway", (t) =>
  t.field({
    type: Gateway,
    nullable: true,
    description: "How the gateway does now. Operators only.",
    resolve: (_root, _args, ctx) => ctx.services.gatewayStatus.show(ctx),
  }),
);
