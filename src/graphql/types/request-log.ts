/** The request log: charged generations and failures (docs/spec/requests.md). */
import type { InputShapeFromFields } from "@pothos/core";
import { ERROR_CODES, type ErrorCode } from "../../errors.js";
import { formatNanocredits } from "../../lib/money.js";
import { FAILURES_PER_ACCOUNT_MAX, REQUEST_FILTER_VALUES_MAX, REQUEST_ID_PREFIX_MIN } from "../../services/request-log/limits.js";
import type { LoggedRequest as LoggedRequestRow } from "../../services/request-log/request-log.js";
import type { RequestFilter, RequestOutcome } from "../../services/request-log/request-log-filter.js";
import type { SelectedUsage } from "../../services/usage/usage-lists.js";
import { builder, describedValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { readId } from "../global-ids.js";
import { edgesBatchedBy } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { selectionOf } from "../selection.js";
import { Account } from "./accounts.js";
import { ApiKey } from "./api-keys.js";
import { GenerationErrorCode } from "./generations.js";
import { Model } from "./models.js";
import { apiKeyOf, UsageRecord } from "./usage.js";

const LIST = "requests";

const RequestOutcomeEnum = builder.enumType("RequestOutcome", {
  description: "How a request ended.",
  values: describedValues<RequestOutcome>({
    ok: "It was answered and charged, possibly at a cost of 0.",
    failed: "It was refused, or failed.",
    client_error: "It failed with a status from 400 to 499: the request can be changed, or sent later.",
    server_error: "It failed with a status from 500: the gateway or an upstream failed.",
  }),
});

const usageRecordOf = edgesBatchedBy<string, SelectedUsage>(async (ctx, ids, accountId, select) =>
  byId(await ctx.services.requestLog.usageRecords(ctx, accountId, ids, select)),
);

const LoggedRequest = builder.objectRef<LoggedRequestRow>("LoggedRequest").implement({
  description:
    "A request for a generation: one that was charged, one that was refused or failed, or one that failed after a part was charged.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.requestLog.getMany(ctx, ids))),
  fields: (t) => ({
    timestamp: t.expose("timestamp", { type: "DateTime", description: "When the answer ended." }),
    requestId: t.exposeID("requestId", {
      nullable: true,
      description: "The request ID, as in `X-Request-Id`. Null for generations that succeeded, which have a `generationId`.",
    }),
    generationId: t.exposeID("generationId", {
      nullable: true,
      description: "The REST ID of the generation, as in `X-Generation-Id`. Null when the request was refused before there was one.",
    }),
    status: t.exposeInt("status", {
      description: "The HTTP status that REST answers in this case: 200, or that of the error code, also for an error within a stream.",
    }),
    code: t.field({
      type: GenerationErrorCode,
      nullable: true,
      description: "The error code. Null when the request succeeded.",
      resolve: ({ code }) =>
        (ERROR_CODES as readonly (string | null)[]).includes(code) ? (code as ErrorCode) : code === null ? null : "BAD_REQUEST",
    }),
    message: t.exposeString("message", {
      nullable: true,
      description: "The error message, without texts of the request and of upstreams. Null when the request succeeded.",
    }),
    modelId: t.exposeID("model", {
      nullable: true,
      description: "The canonical ID of the requested model, or the name that was requested when there is no such model.",
    }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The requested model. Null when it is not offered to the caller.",
      resolve: ({ model }, _args, ctx) => (model === null ? null : ctx.services.catalog.shown(ctx, model)),
    }),
    apiKeyId: t.exposeID("apiKeyId", { nullable: true, description: "The REST ID of the key. Null for requests by sessions." }),
    apiKeyName: t.exposeString("apiKeyName", { nullable: true, description: "The name of the key at that time." }),
    apiKey: t.field({
      type: ApiKey,
      nullable: true,
      description: "The key. Null for requests by sessions. Keys other than the calling one need a secret key with the permission KEYS.",
      resolve: ({ apiKeyId }, _args, ctx, info) => (apiKeyId === null ? null : apiKeyOf(ctx, apiKeyId, info)),
    }),
    route: t.exposeString("route", {
      nullable: true,
      description: "The path pattern of the route. Null for requests that succeeded.",
    }),
    operation: t.exposeString("operation", {
      nullable: true,
      description: "The name of the GraphQL operation, or its type when it has no name. Null for REST, and for requests that succeeded.",
    }),
    milliseconds: t.exposeInt("milliseconds", { description: "Milliseconds from the request to the end of its answer." }),
    leftOut: t.exposeInt("leftOut", {
      description:
        "The number of further requests of the account that failed with the same code at about that time, and are not in the log because there were too many.",
    }),
    cost: t.field({
      type: "Credits",
      description: "The amount charged. 0 for a request that was refused.",
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
    inputTokens: t.exposeInt("inputTokens", { description: "Input tokens of all kinds." }),
    outputTokens: t.exposeInt("outputTokens", { description: "Output tokens of all kinds." }),
    usageRecord: t.field({
      type: UsageRecord,
      nullable: true,
      description: "The usage record. Null when nothing was charged.",
      resolve: ({ isCharged, generationId, accountId }, _args, ctx, info) =>
        isCharged && generationId !== null ? usageRecordOf(ctx, generationId, accountId, selectionOf(ctx, info)) : null,
    }),
    accountId: t.exposeID("accountId", { description: "The ID of the account." }),
  }),
});

const RequestFilterInput = builder.inputType("RequestFilter", {
  description:
    "Filters for requests. A request must match all of them. IDs that do not exist, or belong to another account, match nothing.",
  fields: (t) => ({
    outcomes: t.field({
      type: [RequestOutcomeEnum],
      description: "Requests that ended in one of these ways, or with one of `statuses`.",
    }),
    statuses: t.intList({ description: `Requests with one of these statuses, 200 to 599, at most ${REQUEST_FILTER_VALUES_MAX}.` }),
    codes: t.field({ type: [GenerationErrorCode], description: "Requests with one of these error codes." }),
    apiKeyIds: t.idList({ description: `Requests by one of these keys, at most ${REQUEST_FILTER_VALUES_MAX}.` }),
    modelIds: t.idList({
      description: `Requests for one of these models, at most ${REQUEST_FILTER_VALUES_MAX}: canonical IDs, or names that do not exist.`,
    }),
    requestId: t.string({
      description: `The request with this request ID or generation ID, of any time unless \`from\` is given. ${REQUEST_ID_PREFIX_MIN} or more characters also match the beginning of an ID.`,
    }),
    from: t.field({ type: "DateTime", description: "Requests at or after this time. Defaults to 30 days before the end." }),
    to: t.field({ type: "DateTime", description: "Requests before this time. Defaults to now." }),
  }),
});

interface FilterInput extends Omit<RequestFilter, "codes"> {
  readonly codes?: readonly string[] | null | undefined;
}

/** The service checks everything else. */
function toFilter(filter: FilterInput | null | undefined): RequestFilter {
  const { modelIds, apiKeyIds, codes, ...rest } = filter ?? {};
  return {
    ...rest,
    codes: codes as RequestFilter["codes"],
    apiKeyIds: apiKeyIds?.map((text, index) => readId(text, "ApiKey", `apiKeyIds.${index}`)),
    modelIds: modelIds?.map((text, index) => readId(text, "Model", `modelIds.${index}`)),
  };
}

const listArgs = builder.args((t) => ({
  ...pageArgs,
  filter: t.field({ type: RequestFilterInput, description: "Filters. Defaults to the last 30 days." }),
}));

function toQuery(args: InputShapeFromFields<typeof listArgs>) {
  return { page: toPageRequest(args, LIST), filter: toFilter(args.filter) };
}

const LoggedRequestConnection = builder.connectionObject(
  { type: LoggedRequest, name: "LoggedRequestConnection", description: "A page of requests." },
  { name: "LoggedRequestEdge", description: "A request and its cursor." },
);

builder.prismaObjectField(Account, "requestLog", (t) =>
  t.field({
    type: LoggedRequestConnection,
    nullable: true,
    description: `The account's requests for generations, newest first: charged ones, and those that were refused or failed, of which the newest ${FAILURES_PER_ACCOUNT_MAX} are kept for a time. Permission USAGE, or operators.`,
    args: listArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx) => {
      const page = await ctx.services.requestLog.list(ctx, id, toQuery(args));
      return toConnection(page, LIST, (row) => row);
    },
  }),
);

builder.prismaObjectField(Account, "loggedRequest", (t) =>
  t.field({
    type: LoggedRequest,
    nullable: true,
    description: "One request of the account. Permission USAGE, or operators.",
    args: { id: t.arg.id({ required: true, description: "The ID of the request in the log, or of its generation." }) },
    resolve: (account, { id }, ctx) => ctx.services.requestLog.get(ctx, account.id, readId(id, "LoggedRequest", "id")),
  }),
);

builder.queryField("requestLog", (t) =>
  t.field({
    type: LoggedRequestConnection,
    nullable: true,
    description: "Requests for generations of all accounts, newest first. Operators only.",
    args: { ...listArgs, accountId: t.arg.id({ description: "Only requests of this account." }) },
    complexity: pageCost,
    resolve: async (_root, { accountId, ...args }, ctx) => {
      const id = accountId ? readId(accountId, "Account", "accountId") : null;
      const page = await ctx.services.requestLog.listAll(ctx, id, toQuery(args));
      return toConnection(page, LIST, (row) => row);
    },
  }),
);

builder.queryField("loggedRequest", (t) =>
  t.field({
    type: LoggedRequest,
    nullable: true,
    description: "One request of any account. Operators only.",
    args: { id: t.arg.id({ required: true, description: "The ID of the request in the log, or of its generation." }) },
    resolve: (_root, { id }, ctx) => ctx.services.requestLog.getAny(ctx, readId(id, "LoggedRequest", "id")),
  }),
);

builder.subscriptionField("requestLogged", (t) =>
  t.field({
    type: LoggedRequest,
    description:
      "Each request of the account when it is logged: generations when they are charged, failures within about a second. A request that failed after a part was charged comes twice. Permission USAGE, or operators.",
    args: { accountId: t.arg.id({ description: "The account. Defaults to that of the caller." }) },
    subscribe: (_root, { accountId }, ctx) => {
      const id = accountId ? readId(accountId, "Account", "accountId") : null;
      return cancellable(ctx, (live) => ctx.services.liveRequests.logged(live, id));
    },
    resolve: (entry) => entry,
  }),
);

builder.subscriptionField("requestLogChanged", (t) =>
  t.field({
    type: "DateTime",
    description:
      "The time, whenever requests of any accounts were logged, at most once a second: read `requestLog` of the query again. Operators only.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.liveRequests.changed(live)),
    resolve: (at) => at,
  }),
);
