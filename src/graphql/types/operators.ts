/** Acts of operators on the access to an account. */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import { restoreAccountInput, suspendAccountInput } from "../../services/accounts/suspensions.js";
import { withdrawCreditsInput } from "../../services/accounts/withdrawals.js";
import { revokeAnyApiKeyInput } from "../../services/api-keys/key-administration.js";
import { createPasswordLinkInput, type PasswordLink } from "../../services/sessions/password-links.js";
import { endSessionsInput } from "../../services/sessions/session-administration.js";
import { builder } from "../builder.js";
import { readId } from "../global-ids.js";
import { accountPayload, type ManagedAccount, managed, withAccountId } from "./account-administration.js";
import { MeterSourceEnum } from "./usage.js";

const ACCOUNT_ID = "The ID of the account.";
const REASON = "Why, at most 500 characters. Kept in the audit log.";

const SuspendAccountInput = builder.inputType("SuspendAccountInput", {
  description: "Parameters of `suspendAccount`.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: ACCOUNT_ID }),
    reason: t.string({ required: true, description: "Why, at most 500 characters. Shown to operators and kept in the audit log." }),
  }),
});

const SuspendAccountPayload = accountPayload<ManagedAccount>("SuspendAccountPayload", "The result of `suspendAccount`.");

builder.mutationField("suspendAccount", (t) =>
  t.field({
    type: SuspendAccountPayload,
    nullable: true,
    description:
      "Suspends an account. Its keys, sessions and grants are refused with ACCOUNT_SUSPENDED in all processes, running generations and open connections end, and the delivered part is charged. Not for the caller's own account, the owner's, or the last operator. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SuspendAccountInput, required: true, description: "The account and the reason." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const change = parsePermitted(ctx, requireOperator, suspendAccountInput, () => withAccountId(input));
      await ctx.services.accountSuspensions.suspend(ctx, change);
      return managed(ctx, info, change.accountId);
    },
  }),
);

const RestoreAccountInput = builder.inputType("RestoreAccountInput", {
  description: "Parameters of `restoreAccount`.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: ACCOUNT_ID }),
    reason: t.string({ description: "Why, at most 500 characters. Kept in the audit log." }),
  }),
});

const RestoreAccountPayload = accountPayload<ManagedAccount>("RestoreAccountPayload", "The result of `restoreAccount`.");

builder.mutationField("restoreAccount", (t) =>
  t.field({
    type: RestoreAccountPayload,
    nullable: true,
    description: "Restores a suspended account: its keys and sessions are accepted again. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RestoreAccountInput, required: true, description: "The account and the reason." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const change = parsePermitted(ctx, requireOperator, restoreAccountInput, () => withAccountId(input));
      await ctx.services.accountSuspensions.restore(ctx, change);
      return managed(ctx, info, change.accountId);
    },
  }),
);

const RevokeAnyApiKeyInput = builder.inputType("RevokeAnyApiKeyInput", {
  description: "Parameters of `revokeAnyApiKey`.",
  fields: (t) => ({
    apiKeyId: t.id({ required: true, description: "The ID of the key, of any account." }),
    reason: t.string({ description: REASON }),
  }),
});

const RevokeAnyApiKeyPayload = accountPayload<ManagedAccount>("RevokeAnyApiKeyPayload", "The result of `revokeAnyApiKey`.");

builder.mutationField("revokeAnyApiKey", (t) =>
  t.field({
    type: RevokeAnyApiKeyPayload,
    nullable: true,
    description: "Revokes a key of any account, and the keys that were made with it. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RevokeAnyApiKeyInput, required: true, description: "The key and the reason." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const read = () => ({ ...input, apiKeyId: readId(input.apiKeyId, "ApiKey", "apiKeyId") });
      const parsed = parsePermitted(ctx, requireOperator, revokeAnyApiKeyInput, read);
      return managed(ctx, info, await ctx.services.keyAdministration.revoke(ctx, parsed));
    },
  }),
);

const EndSessionsInput = builder.inputType("EndSessionsInput", {
  description: "Parameters of `endSessions`.",
  fields: (t) => ({ accountId: t.id({ required: true, description: ACCOUNT_ID }), reason: t.string({ description: REASON }) }),
});

interface EndedSessions extends ManagedAccount {
  readonly ended: number;
}

const EndSessionsPayload = accountPayload<EndedSessions>("EndSessionsPayload", "The result of `endSessions`.");

builder.objectField(EndSessionsPayload, "ended", (t) => t.exposeInt("ended", { description: "The number of sessions that ended." }));

builder.mutationField("endSessions", (t) =>
  t.field({
    type: EndSessionsPayload,
    nullable: true,
    description: "Ends all browser sessions of an account. Its keys go on working. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: EndSessionsInput, required: true, description: "The account and the reason." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const parsed = parsePermitted(ctx, requireOperator, endSessionsInput, () => withAccountId(input));
      const ended = await ctx.services.sessionAdministration.endAll(ctx, parsed);
      return { ...(await managed(ctx, info, parsed.accountId)), ended };
    },
  }),
);

const CreatePasswordLinkInput = builder.inputType("CreatePasswordLinkInput", {
  description: "Parameters of `createPasswordLink`.",
  fields: (t) => ({ accountId: t.id({ required: true, description: ACCOUNT_ID }) }),
});

interface MadePasswordLink extends ManagedAccount, PasswordLink {}

const CreatePasswordLinkPayload = accountPayload<MadePasswordLink>("CreatePasswordLinkPayload", "The result of `createPasswordLink`.");

builder.objectFields(CreatePasswordLinkPayload, (t) => ({
  url: t.exposeString("url", { description: "The link, shown only once. Pass it to the account's owner." }),
  expiresAt: t.expose("expiresAt", { type: "DateTime", description: "When the link expires." }),
}));

builder.mutationField("createPasswordLink", (t) =>
  t.field({
    type: CreatePasswordLinkPayload,
    nullable: true,
    description:
      "Makes a link by which an account's owner sets a new password, once, within 24 hours. It replaces an earlier link. Setting the password ends all sessions of the account. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreatePasswordLinkInput, required: true, description: "The account." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const parsed = parsePermitted(ctx, requireOperator, createPasswordLinkInput, () => withAccountId(input));
      const link = await ctx.services.passwordLinks.create(ctx, parsed);
      return { ...(await managed(ctx, info, parsed.accountId)), ...link };
    },
  }),
);

const WithdrawCreditsInput = builder.inputType("WithdrawCreditsInput", {
  description: "Parameters of `withdrawCredits`.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: ACCOUNT_ID }),
    bucket: t.field({ type: MeterSourceEnum, required: true, description: "The bucket that the credits are taken from." }),
    credits: t.field({ type: "Credits", required: true, description: "The most credits to take. Must be more than 0." }),
    note: t.string({ description: "A note that is kept in the ledger and in the audit log." }),
    withdrawalId: t.id({ description: "A UUID that you choose. A withdrawal that is sent twice with the same UUID is made once." }),
  }),
});

interface Withdrawn extends ManagedAccount {
  readonly nanocredits: bigint;
}

const WithdrawCreditsPayload = accountPayload<Withdrawn>("WithdrawCreditsPayload", "The result of `withdrawCredits`.");

builder.objectField(WithdrawCreditsPayload, "credits", (t) =>
  t.field({
    type: "Credits",
    description: "The credits that were taken: fewer than requested when the bucket had fewer available.",
    resolve: ({ nanocredits }) => formatNanocredits(nanocredits),
  }),
);

builder.mutationField("withdrawCredits", (t) =>
  t.field({
    type: WithdrawCreditsPayload,
    nullable: true,
    description: "Takes credits of an account back, at most those that no running generation holds. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: WithdrawCreditsInput, required: true, description: "The account and the credits." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const parsed = parsePermitted(ctx, requireOperator, withdrawCreditsInput, () => withAccountId(input));
      const nanocredits = await ctx.services.withdrawals.withdraw(ctx, parsed);
      return { ...(await managed(ctx, info, parsed.accountId)), nanocredits };
    },
  }),
);
