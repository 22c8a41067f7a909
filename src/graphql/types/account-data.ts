/** Account export and account deletion (docs/spec/accounts.md#deletion). */
import { formatNanocredits } from "../../lib/money.js";
import { COUNTED_MAX } from "../../lib/pagination.js";
import { parsePermitted, requireSession } from "../../services/access/permissions.js";
import {
  type DeletedAccount,
  type DeletionObstacle,
  type DeletionPreview,
  type DeletionProof,
  deleteAccountInput,
  type EndedKind,
} from "../../services/account-data/deletion.js";
import type { ExportPage, ExportSection } from "../../services/account-data/export.js";
import { EXPORT_PAGE_MAX, FRESH_SESSION_SECONDS } from "../../services/account-data/limits.js";
import { builder, describedValues } from "../builder.js";
import { Account } from "./accounts.js";
import { answering } from "./sessions.js";

const EXPORT_COST = 100;

const SECTIONS: Readonly<Record<ExportSection, string>> = {
  profile: "The account itself, as a single object.",
  sign_in_methods: "Sign-in methods: providers and times, without passwords or tokens.",
  sessions: "Browser sessions.",
  api_keys: "All API keys, revoked ones included, without the secrets that authenticate them.",
  usage: "All generations, each with the amount that every bucket paid.",
  failed_requests: "Requests for generations that were refused or failed, as far as the request log keeps them.",
  ledger: "Credits granted, refilled and forfeited, by bucket.",
  files: "Uploaded and generated files, identified by the hash of their content.",
  uploads: "Files uploaded directly to the blob store, with their tags.",
  webhook_endpoints: "Webhook endpoints, without their secrets.",
  stored_responses: "Stored responses with their input, at most 5 a page.",
  conversations: "Conversations with their items, at most 5 a page.",
  presets: "Presets of the playground.",
  vendor_keys: "Vendor keys, without their secrets.",
  usage_limits: "Limits that renew.",
  earnings: "Shares of charges that the account earned.",
  alerts: "Raised alerts.",
  top_ups: "Purchases of credits, unpaid ones included.",
  models: "Models and agents registered by the account, without credentials.",
};

const AccountExportSection = builder.enumType("AccountExportSection", {
  description: "A section of the account export.",
  values: describedValues(SECTIONS),
});

const AccountExportPage = builder.objectRef<ExportPage>("AccountExportPage").implement({
  description: "A page of an export section.",
  fields: (t) => ({
    items: t.field({
      type: ["JSON"],
      description: "Exported objects, newest first. Credits are decimal strings, and times are ISO 8601 text.",
      resolve: ({ items }) => [...items],
    }),
    endCursor: t.string({
      nullable: true,
      description: "The cursor to pass as `after` for the next page. Null on the last page.",
      resolve: ({ next }) => next,
    }),
  }),
});

builder.prismaObjectField(Account, "export", (t) =>
  t.field({
    type: AccountExportPage,
    nullable: true,
    description: "Exports all data stored for the account, one page of a section at a time. Sessions only.",
    args: {
      section: t.arg({ type: AccountExportSection, required: true, description: "The section to export." }),
      first: t.arg.int({ description: `The number of objects to return, 1 to ${EXPORT_PAGE_MAX}. Defaults to the maximum.` }),
      after: t.arg.string({ description: "The `endCursor` of the previous page." }),
    },
    complexity: EXPORT_COST,
    resolve: ({ id }, query, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.accountExports.page(ctx, query);
    },
  }),
);

const AccountDeletionObstacle = builder.enumType("AccountDeletionObstacle", {
  description: "The reason why an account cannot be deleted now.",
  values: describedValues<DeletionObstacle>({
    operator: "The account is an operator of this gateway.",
    stale_session: `The account has no password, and the current session is older than ${FRESH_SESSION_SECONDS / 60} minutes. Sign in again.`,
  }),
});

const AccountDeletionProof = builder.enumType("AccountDeletionProof", {
  description: "How the owner proves their identity to delete the account.",
  values: describedValues<DeletionProof>({
    password: "The account's password.",
    fresh_session: `A session younger than ${FRESH_SESSION_SECONDS / 60} minutes, for accounts without a password.`,
  }),
});

const COUNTED = `Counted up to ${COUNTED_MAX}.`;
const ENDED: Readonly<Record<EndedKind, string>> = {
  apiKeys: "API keys that will be revoked, keys of connected apps included.",
  sessions: "Browser sessions that will be signed out.",
  webhookEndpoints: "Webhook endpoints that will be removed, with their logs.",
  communityModels: "Models and agents that can no longer be called.",
  files: "Files that can no longer be read.",
};

const AccountDeletionPreview = builder.objectRef<DeletionPreview>("AccountDeletionPreview").implement({
  description: "The effects of deleting an account. Its remaining credits are forfeited.",
  fields: (t) => ({
    obstacle: t.field({
      type: AccountDeletionObstacle,
      nullable: true,
      description: "The reason why the account cannot be deleted now. Null when it can be deleted.",
      resolve: ({ obstacle }) => obstacle,
    }),
    proof: t.field({
      type: AccountDeletionProof,
      description: "The proof of identity that the deletion requires.",
      resolve: ({ proof }) => proof,
    }),
    ...Object.fromEntries(
      (Object.keys(ENDED) as EndedKind[]).map((kind) => [
        kind,
        t.int({ description: `${ENDED[kind]} ${COUNTED}`, resolve: ({ ended }) => ended[kind] }),
      ]),
    ),
    keptUsageRecords: t.exposeInt("keptUsageRecords", {
      description: `Usage records that are kept with the ledger for accounting: amounts, models and times, without names. ${COUNTED}`,
    }),
  }),
});

builder.prismaObjectField(Account, "deletionPreview", (t) =>
  t.field({
    type: AccountDeletionPreview,
    nullable: true,
    description: "A preview of the account's deletion. Sessions only.",
    complexity: EXPORT_COST,
    resolve: ({ id }, _args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.accountDeletions.preview(ctx);
    },
  }),
);

const DeleteAccountInput = builder.inputType("DeleteAccountInput", {
  description: "Parameters of `deleteAccount`.",
  fields: (t) => ({
    confirmHandle: t.string({
      required: true,
      description: "The handle of the account, as a confirmation. Its credits are forfeited, and the deletion cannot be undone.",
    }),
    password: t.string({ description: "The password of the account. Required when it has one." }),
  }),
});

const DeleteAccountPayload = builder.objectRef<DeletedAccount>("DeleteAccountPayload").implement({
  description: "The result of `deleteAccount`.",
  fields: (t) => ({
    deletedId: t.exposeID("accountId", { description: "The REST ID of the deleted account. The ledger keeps references to it." }),
    deletedAt: t.expose("deletedAt", { type: "DateTime", description: "When the account was deleted." }),
    forfeited: t.field({
      type: "Credits",
      description:
        "The available credits that were forfeited. Credits held for running generations are charged or forfeited when those end.",
      resolve: ({ forfeited }) => formatNanocredits(forfeited),
    }),
  }),
});

builder.mutationField("deleteAccount", (t) =>
  t.field({
    type: DeleteAccountPayload,
    nullable: true,
    description:
      "Deletes the signed-in account. Its keys, sessions, webhooks, models, agents, files and connected apps end at once, and its credits are forfeited. Usage records and the ledger stay, without names. Sessions only. Over HTTP only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DeleteAccountInput, required: true, description: "The confirmation of the deletion." }) },
    resolve: (_root, { input }, ctx) =>
      answering(ctx, () => ctx.services.accountDeletions.delete(ctx, parsePermitted(ctx, requireSession, deleteAccountInput, input))),
  }),
);
