/** Live account data: each usage row, each new balance and what becomes of keys, as it happens. */
import type { ApiKeyChange as Change } from "../../services/accounts/live-api-keys.js";
import { builder, describedValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { selectionOf } from "../selection.js";
import { Account } from "./accounts.js";
import { ApiKey } from "./api-keys.js";
import { UsageRecord } from "./usage.js";

builder.subscriptionField("usageRecorded", (t) =>
  t.field({
    type: UsageRecord,
    description: "Each generation of the account when it has been charged. Permission USAGE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.live.usageRecorded(live), ctx.closing),
    resolve: (row, _args, ctx, info) => {
      selectionOf(ctx, info);
      return row;
    },
  }),
);

const BalanceChange = builder.objectRef<{ readonly accountId: string }>("BalanceChange").implement({
  description: "The balance, or what is held of it, has changed.",
  fields: (t) => ({
    account: t.field({
      type: Account,
      description: "The account, with its balance as it now is.",
      resolve: ({ accountId }, _args, ctx, info) => ctx.services.accounts.get(ctx, accountId, selectionOf(ctx, info)),
    }),
  }),
});

builder.subscriptionField("balanceChanged", (t) =>
  t.field({
    type: BalanceChange,
    description: "Each change of the balance, or of what is held of it. A burst of changes is one. Permission BALANCE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.live.balanceChanged(live), ctx.closing),
    resolve: (change) => change,
  }),
);

const ApiKeyChangeKind = builder.enumType("ApiKeyChangeKind", {
  description: "What became of a key.",
  values: describedValues<Change["change"]>({
    created: "It was made, or granted to an app.",
    updated: "It was changed, or a key that made it.",
    revoked: "It was revoked, or a key that made it.",
    expired: "It has reached its end, or a key that made it.",
  }),
});

const ApiKeyChange = builder.objectRef<Change>("ApiKeyChange").implement({
  description: "Something became of one of the account's keys.",
  fields: (t) => ({
    kind: t.expose("change", { type: ApiKeyChangeKind, description: "What became of it." }),
    apiKeyId: t.exposeID("apiKeyId", { description: "The REST id of the key." }),
    apiKey: t.field({
      type: ApiKey,
      nullable: true,
      description: "The key as it now is.",
      resolve: ({ apiKeyId }, _args, ctx, info) => ctx.services.apiKeys.get(ctx, apiKeyId, selectionOf(ctx, info)),
    }),
  }),
});

builder.subscriptionField("apiKeyChanged", (t) =>
  t.field({
    type: ApiKeyChange,
    description:
      "Each time that one of the account's keys is made, changed, revoked or at its end, each key for itself. Permission KEYS, with a secret key or a session.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.liveApiKeys.changes(live), ctx.closing),
    resolve: (change) => change,
  }),
);
