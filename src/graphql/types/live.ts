/** Subscriptions to account data: usage records, balance changes and key changes. */
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
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.live.usageRecorded(live)),
    resolve: (row, _args, ctx, info) => {
      selectionOf(ctx, info);
      return row;
    },
  }),
);

const BalanceChange = builder.objectRef<{ readonly accountId: string }>("BalanceChange").implement({
  description: "A change of the balance or of the held credits.",
  fields: (t) => ({
    account: t.field({
      type: Account,
      description: "The account, with its new balance.",
      resolve: ({ accountId }, _args, ctx, info) => ctx.services.accounts.get(ctx, accountId, selectionOf(ctx, info)),
    }),
  }),
});

builder.subscriptionField("balanceChanged", (t) =>
  t.field({
    type: BalanceChange,
    description: "Changes of the balance or of the held credits. Rapid changes are combined. Permission BALANCE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.live.balanceChanged(live)),
    resolve: (change) => change,
  }),
);

const ApiKeyChangeKind = builder.enumType("ApiKeyChangeKind", {
  description: "The type of a change of a key.",
  values: describedValues<Change["change"]>({
    created: "The key was created, or granted to an app.",
    updated: "The key or a key that created it was updated.",
    revoked: "The key or a key that created it was revoked.",
    expired: "The key or a key that created it expired.",
  }),
});

const ApiKeyChange = builder.objectRef<Change>("ApiKeyChange").implement({
  description: "A change of one of the account's keys.",
  fields: (t) => ({
    kind: t.expose("change", { type: ApiKeyChangeKind, description: "The type of the change." }),
    apiKeyId: t.exposeID("apiKeyId", { description: "The REST ID of the key." }),
    apiKey: t.field({
      type: ApiKey,
      nullable: true,
      description: "The key after the change.",
      resolve: ({ apiKeyId }, _args, ctx, info) => ctx.services.apiKeys.get(ctx, apiKeyId, selectionOf(ctx, info)),
    }),
  }),
});

builder.subscriptionField("apiKeyChanged", (t) =>
  t.field({
    type: ApiKeyChange,
    description:
      "Changes of the account's keys: creation, update, revocation and expiry, one event per key. Permission KEYS, with a secret key or a session.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.liveApiKeys.changes(live)),
    resolve: (change) => change,
  }),
);
