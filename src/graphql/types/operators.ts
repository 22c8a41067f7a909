/** Acts of operators on the access to an account. */
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import { restoreAccountInput, suspendAccountInput } from "../../services/accounts/suspensions.js";
import { builder } from "../builder.js";
import { accountPayload, type ManagedAccount, managed, withAccountId } from "./account-administration.js";

const ACCOUNT_ID = "The ID of the account.";

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
