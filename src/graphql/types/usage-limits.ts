/** Limits that renew (docs/spec/usage-limits.md). */
import type { Page } from "../../lib/pagination.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import type { LiveAccount } from "../../services/accounts/live.js";
import { createUsageLimitInput, updateUsageLimitInput } from "../../services/usage-limits/limit-input.js";
import { USAGE_LIMITS_PER_ACCOUNT_MAX, WINDOW_MINUTES_MAX } from "../../services/usage-limits/limits.js";
import { formatAmount, type LimitUsage, type SelectedUsageLimit } from "../../services/usage-limits/usage-limits.js";
import { builder, describedValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { readId } from "../global-ids.js";
import { batchedByMap } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";

type ReachedLimit = ReturnType<LiveAccount["usageLimitReached"]> extends AsyncIterableIterator<infer Reached> ? Reached : never;

const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";
const AMOUNT = "A decimal number of credits, or a whole number of requests, tokens or generations.";
const MODEL = "The ID of the model whose generations count. Null: every model.";
const MINUTES = `The length of the window in minutes, from 1 to ${WINDOW_MINUTES_MAX}. Null: the period states it.`;
const ROLLING = "True: the window covers the time until now. False: it begins with the clock in the time zone.";
const TIME_ZONE = "The IANA time zone in which calendar windows begin, such as Europe/Berlin.";
const ALERT_AT = "Percentages of the amount at which the account is notified, in ascending order.";
const WHOSE = "The REST ID of the key that it limits, with the keys made with it. Null: the whole account, or all accounts.";

const UsageLimitMetric = builder.enumType("UsageLimitMetric", {
  description: "The quantity that a usage limit counts.",
  values: describedValues({
    credits: "Credits charged.",
    requests: "Generations under way, and those for which an upstream was called.",
    tokens: "Tokens in and out.",
    concurrency: "Generations at once.",
  }),
});

const UsageLimitPeriod = builder.enumType("UsageLimitPeriod", {
  description: "The length of a usage limit's window.",
  values: describedValues({
    hour: "An hour.",
    day: "A day. Of a calendar window: from midnight.",
    week: "A week. Of a calendar window: from Monday.",
    month: "A month. Of a calendar window: from the first.",
  }),
});

const UsageLimitRaise = builder.objectRef<{ readonly amount: string; readonly until: Date }>("UsageLimitRaise").implement({
  description: "A temporary raise of a usage limit.",
  fields: (t) => ({
    amount: t.exposeString("amount", { description: `Added to the amount. ${AMOUNT}` }),
    until: t.expose("until", { type: "DateTime", description: "When the raise ends." }),
  }),
});

const UsageLimitUsage = builder.objectRef<LimitUsage>("UsageLimitUsage").implement({
  description: "The usage of a limit's current window. Generations under way are not included.",
  fields: (t) => ({
    spent: t.exposeString("spent", { description: `The part that is spent. ${AMOUNT}` }),
    remaining: t.exposeString("remaining", { description: `The part that is left. ${AMOUNT}` }),
    percent: t.exposeInt("percent", { description: "The part that is spent, in whole percent." }),
    renewsAt: t.expose("renewsAt", {
      type: "DateTime",
      nullable: true,
      description: "When the window ends. Null for rolling windows, and for generations at once.",
    }),
  }),
});

const usageOf = batchedByMap<LimitUsage>(async (ctx, ids) => byId(await ctx.services.usageLimits.usageOf(ctx, ids)));

const UsageLimit = builder.prismaObject("UsageLimit", {
  description: "A limit that renews, of a key or an account.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.usageLimits.getMany(ctx, ids, selectionOf(ctx, info, [], "UsageLimit"))),
  ),
  fields: (t) => ({
    apiKeyId: t.exposeID("apiKeyId", { nullable: true, description: WHOSE }),
    isOfAllAccounts: t.boolean({
      description: "True: it counts the generations of its model over all accounts together. Operators set it.",
      select: { accountId: true },
      resolve: ({ accountId }) => accountId === null,
    }),
    modelId: t.exposeID("model", { nullable: true, description: MODEL }),
    metric: t.field({
      type: UsageLimitMetric,
      description: "The quantity that it counts.",
      select: { metric: true },
      resolve: ({ metric }) => metric,
    }),
    amount: t.string({
      description: `The most of it in a window, without a raise. ${AMOUNT}`,
      select: { metric: true, amount: true },
      resolve: ({ metric, amount }) => formatAmount(metric, amount),
    }),
    period: t.field({
      type: UsageLimitPeriod,
      nullable: true,
      description: "The length of the window. Null: `minutes` states it, or there is none.",
      select: { period: true },
      resolve: ({ period }) => period,
    }),
    minutes: t.exposeInt("minutes", { nullable: true, description: MINUTES }),
    isRolling: t.exposeBoolean("isRolling", { description: ROLLING }),
    timeZone: t.exposeString("timeZone", { description: TIME_ZONE }),
    alertAt: t.exposeIntList("alertAt", { description: ALERT_AT }),
    raise: t.field({
      type: UsageLimitRaise,
      nullable: true,
      description: "The last temporary raise. Null: none.",
      select: { metric: true, raiseAmount: true, raiseUntil: true },
      resolve: ({ metric, raiseAmount, raiseUntil }) =>
        raiseUntil === null ? null : { amount: formatAmount(metric, raiseAmount), until: raiseUntil },
    }),
    usage: t.field({
      type: UsageLimitUsage,
      nullable: true,
      description: "The usage of the current window.",
      resolve: ({ id }, _args, ctx) => usageOf(ctx, id),
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the limit was created." }),
    updatedAt: t.expose("updatedAt", { type: "DateTime", description: "When the limit was last changed." }),
  }),
});

const UsageLimitConnection = builder.connectionObject(
  { type: UsageLimit, name: "UsageLimitConnection", description: "A page of usage limits." },
  { name: "UsageLimitEdge", description: "A usage limit and its cursor." },
);

builder.queryField("modelLimits", (t) =>
  t.field({
    type: UsageLimitConnection,
    nullable: true,
    description: "Limits of models over all accounts together, newest first. Operators only.",
    args: pageArgs,
    complexity: pageCost,
    resolve: async (_root, args, ctx, info) => {
      const page = toPageRequest(args, "modelLimits");
      const limits = await ctx.services.usageLimits.listOfModels(ctx, page, connectionSelectionOf(ctx, info));
      return toConnection(limits, "modelLimits", createdPosition);
    },
  }),
);

builder.prismaObjectField(Account, "usageLimits", (t) =>
  t.field({
    type: UsageLimitConnection,
    nullable: true,
    description: `Limits that renew, of the account and its keys, newest first. ${NEEDS_KEYS} Operators may read those of any account.`,
    args: {
      ...pageArgs,
      apiKeyId: t.arg.id({ description: "The ID of a key: only its own limits." }),
      ofAccount: t.arg.boolean({ description: "True: only limits of the account itself.", defaultValue: false }),
    },
    complexity: pageCost,
    resolve: async ({ id: accountId }, { apiKeyId, ofAccount, ...args }, ctx, info) => {
      const scope = {
        accountId,
        apiKeyId: apiKeyId == null ? null : readId(apiKeyId, "ApiKey", "apiKeyId"),
        ofAccount: ofAccount ?? false,
      };
      const page = toPageRequest(args, "usageLimits");
      const limits: Page<SelectedUsageLimit> = await ctx.services.usageLimits.list(ctx, page, scope, connectionSelectionOf(ctx, info));
      return toConnection(limits, "usageLimits", createdPosition);
    },
  }),
);

const UsageLimitRaiseInput = builder.inputType("UsageLimitRaiseInput", {
  description: "A temporary raise of a usage limit.",
  fields: (t) => ({
    amount: t.string({ required: true, description: `Added to the amount. ${AMOUNT}` }),
    until: t.field({ type: "DateTime", required: true, description: "When the raise ends, at most 366 days ahead." }),
  }),
});

const CreateUsageLimitInput = builder.inputType("CreateUsageLimitInput", {
  description: "Parameters of `createUsageLimit`. State `apiKeyId`, or, as an operator, `accountId`, or `allAccounts` with `model`.",
  fields: (t) => ({
    apiKeyId: t.id({ description: "The ID of the key to limit, with the keys made with it." }),
    accountId: t.id({ description: "The ID of the account to limit. Operators only." }),
    allAccounts: t.boolean({
      description: "True: limits the requests, tokens or generations at once of `model`, over all accounts together. Operators only.",
      defaultValue: false,
    }),
    metric: t.field({ type: UsageLimitMetric, required: true, description: "The quantity that it counts." }),
    model: t.string({ description: "The ID or an alias of the model whose generations count. Defaults to every model." }),
    amount: t.string({ required: true, description: `The most of it in a window. ${AMOUNT}` }),
    period: t.field({ type: UsageLimitPeriod, description: "The length of the window, unless `minutes` states it." }),
    minutes: t.int({ description: `The length of the window in minutes, from 1 to ${WINDOW_MINUTES_MAX}, unless \`period\` states it.` }),
    rolling: t.boolean({ description: ROLLING, defaultValue: false }),
    timeZone: t.string({ description: TIME_ZONE, defaultValue: "UTC" }),
    alertAt: t.intList({ description: ALERT_AT }),
    raise: t.field({ type: UsageLimitRaiseInput, description: "A temporary raise." }),
  }),
});

interface UsageLimitPayload {
  readonly usageLimit: SelectedUsageLimit;
}

const CreateUsageLimitPayload = builder.objectRef<UsageLimitPayload>("CreateUsageLimitPayload").implement({
  description: "The result of `createUsageLimit`.",
  fields: (t) => ({
    usageLimit: t.field({ type: UsageLimit, description: "The new limit.", resolve: ({ usageLimit }) => usageLimit }),
  }),
});

builder.mutationField("createUsageLimit", (t) =>
  t.field({
    type: CreateUsageLimitPayload,
    nullable: true,
    description: `Limits a key, or, for operators, an account or a model. There are at most ${USAGE_LIMITS_PER_ACCOUNT_MAX} limits of an account's keys. ${NEEDS_KEYS} A key cannot change a limit that it is under.`,
    args: { input: t.arg({ type: CreateUsageLimitInput, required: true, description: "The limit to create." }) },
    resolve: async (_root, { input: { apiKeyId, accountId, ...terms } }, ctx, info) => {
      const { usageLimits } = ctx.services;
      const input = () => ({
        ...withoutNulls(terms),
        apiKeyId: apiKeyId == null ? undefined : readId(apiKeyId, "ApiKey", "apiKeyId"),
        accountId: accountId == null ? undefined : readId(accountId, "Account", "accountId"),
      });
      const id = await usageLimits.create(ctx, parsePermitted(ctx, requireKeyManager, createUsageLimitInput, input));
      return { usageLimit: await usageLimits.get(ctx, id, selectionOf(ctx, info, ["usageLimit"])) };
    },
  }),
);

const UpdateUsageLimitInput = builder.inputType("UpdateUsageLimitInput", {
  description: "Parameters of `updateUsageLimit`. Omitted fields do not change.",
  fields: (t) => ({
    id: t.id({ required: true, description: "The ID of the limit." }),
    amount: t.string({ description: `The most of it in a window. ${AMOUNT}` }),
    period: t.field({ type: UsageLimitPeriod, description: "The length of the window. Replaces `minutes`." }),
    minutes: t.int({ description: "The length of the window in minutes. Replaces `period`." }),
    rolling: t.boolean({ description: ROLLING }),
    timeZone: t.string({ description: TIME_ZONE }),
    alertAt: t.intList({ description: ALERT_AT }),
    raise: t.field({ type: UsageLimitRaiseInput, description: "A temporary raise. Null ends it." }),
  }),
});

const UpdateUsageLimitPayload = builder.objectRef<UsageLimitPayload>("UpdateUsageLimitPayload").implement({
  description: "The result of `updateUsageLimit`.",
  fields: (t) => ({
    usageLimit: t.field({ type: UsageLimit, description: "The limit after the change.", resolve: ({ usageLimit }) => usageLimit }),
  }),
});

builder.mutationField("updateUsageLimit", (t) =>
  t.field({
    type: UpdateUsageLimitPayload,
    nullable: true,
    description: `Changes a limit. ${NEEDS_KEYS} Limits of accounts and models: operators only.`,
    args: { input: t.arg({ type: UpdateUsageLimitInput, required: true, description: "The limit and its changes." }) },
    resolve: async (_root, { input: { id: given, raise, ...terms } }, ctx, info) => {
      const { usageLimits } = ctx.services;
      const input = parsePermitted(ctx, requireKeyManager, updateUsageLimitInput, { ...withoutNulls(terms), raise });
      const id = readId(given, "UsageLimit", "id");
      await usageLimits.update(ctx, id, input);
      return { usageLimit: await usageLimits.get(ctx, id, selectionOf(ctx, info, ["usageLimit"])) };
    },
  }),
);

const DeleteUsageLimitPayload = builder.objectRef<{ readonly id: string }>("DeleteUsageLimitPayload").implement({
  description: "The result of `deleteUsageLimit`.",
  fields: (t) => ({ deletedId: t.exposeID("id", { description: "The REST ID of the deleted limit." }) }),
});

builder.mutationField("deleteUsageLimit", (t) =>
  t.field({
    type: DeleteUsageLimitPayload,
    nullable: true,
    description: `Deletes a limit. ${NEEDS_KEYS} Limits of accounts and models: operators only.`,
    args: {
      input: t.arg({
        type: builder.inputType("DeleteUsageLimitInput", {
          description: "Parameters of `deleteUsageLimit`.",
          fields: (f) => ({ id: f.id({ required: true, description: "The ID of the limit." }) }),
        }),
        required: true,
        description: "The limit to delete.",
      }),
    },
    resolve: async (_root, { input }, ctx) => ({ id: await ctx.services.usageLimits.delete(ctx, readId(input.id, "UsageLimit", "id")) }),
  }),
);

const UsageLimitReached = builder.objectRef<ReachedLimit>("UsageLimitReached").implement({
  description: "A percentage of a limit that the usage of its window has reached.",
  fields: (t) => ({
    usageLimitId: t.exposeID("limitId", { description: "The REST ID of the limit." }),
    apiKeyId: t.exposeID("apiKeyId", { nullable: true, description: WHOSE }),
    modelId: t.exposeID("model", { nullable: true, description: MODEL }),
    metric: t.field({ type: UsageLimitMetric, description: "The quantity that it counts.", resolve: ({ metric }) => metric }),
    percent: t.exposeInt("percent", { description: "The percentage, of `alertAt`." }),
    amount: t.exposeString("amount", { description: `The amount in force. ${AMOUNT}` }),
    spent: t.exposeString("spent", { description: `The part that was spent. ${AMOUNT}` }),
    at: t.field({ type: "DateTime", description: "When it was noticed.", resolve: ({ at }) => new Date(at) }),
  }),
});

builder.subscriptionField("usageLimitReached", (t) =>
  t.field({
    type: UsageLimitReached,
    description: `Each percentage of a limit of the account or its keys that usage reaches, once a window. ${NEEDS_KEYS}`,
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.live.usageLimitReached(live)),
    resolve: (reached) => reached,
  }),
);

/** A null of these fields is an omitted one. */
function withoutNulls<Terms extends object>(terms: Terms): Partial<Terms> {
  return Object.fromEntries(Object.entries(terms).filter(([, value]) => value !== null)) as Partial<Terms>;
}
