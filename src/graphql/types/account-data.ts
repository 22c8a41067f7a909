/** The account as a whole: what is kept of it, to be taken away, and its deletion (docs/spec/accounts.md#deletion). */
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
  profile: "The account itself: one object.",
  sign_in_methods: "How it is signed in to: providers and times, no password and no token.",
  sessions: "Browsers in which it is signed in.",
  api_keys: "All of its keys, revoked ones too, without what they are known by.",
  usage: "Every generation, each with what the buckets paid for it.",
  ledger: "What was granted, refilled and forfeited, by bucket.",
  files: "Files that were uploaded or generated, by their content.",
  uploads: "Files that were sent straight to the store, with their tags.",
  webhook_endpoints: "Webhook endpoints, without their secrets.",
  models: "Models and agents that it has registered, without credentials.",
};

const AccountExportSection = builder.enumType("AccountExportSection", {
  description: "A part of what is kept of an account.",
  values: describedValues(SECTIONS),
});

const AccountExportPage = builder.objectRef<ExportPage>("AccountExportPage").implement({
  description: "A page of a section.",
  fields: (t) => ({
    items: t.field({
      type: ["JSON"],
      description: "Objects as they are kept, newest first. Credits are decimal strings, times ISO 8601 text.",
      resolve: ({ items }) => [...items],
    }),
    endCursor: t.string({
      nullable: true,
      description: "What the next page is asked for with, as `after`. Null: this is the last one.",
      resolve: ({ next }) => next,
    }),
  }),
});

builder.prismaObjectField(Account, "export", (t) =>
  t.field({
    type: AccountExportPage,
    nullable: true,
    description: "Everything that is kept of the account, a page of a section at a time. Sessions only.",
    args: {
      section: t.arg({ type: AccountExportSection, required: true, description: "Which part of it." }),
      first: t.arg.int({ description: `How many objects, 1 to ${EXPORT_PAGE_MAX}; as many as that unless stated.` }),
      after: t.arg.string({ description: "The `endCursor` of the page before." }),
    },
    complexity: EXPORT_COST,
    resolve: ({ id }, query, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.accountExports.page(ctx, query);
    },
  }),
);

const AccountDeletionObstacle = builder.enumType("AccountDeletionObstacle", {
  description: "Why an account cannot be deleted now.",
  values: describedValues<DeletionObstacle>({
    operator: "It is an operator's: the gateway is run with it.",
    stale_session: `It has no password, and the session that asks began more than ${FRESH_SESSION_SECONDS / 60} minutes ago: sign in again.`,
  }),
});

const AccountDeletionProof = builder.enumType("AccountDeletionProof", {
  description: "What shows that it is an account's owner who deletes it.",
  values: describedValues<DeletionProof>({
    password: "The account's password.",
    fresh_session: `A session that began in the last ${FRESH_SESSION_SECONDS / 60} minutes: the account has no password.`,
  }),
});

const COUNTED = `Counted up to ${COUNTED_MAX}.`;
const ENDED: Readonly<Record<EndedKind, string>> = {
  apiKeys: "Keys that are revoked, those of apps that act for it included.",
  sessions: "Browsers that are signed out.",
  webhookEndpoints: "Webhook endpoints that are told nothing any more, and their logs.",
  communityModels: "Models and agents that cannot be called any more.",
  files: "Files that cannot be read any more.",
};

const AccountDeletionPreview = builder.objectRef<DeletionPreview>("AccountDeletionPreview").implement({
  description: "What the deletion of an account would do. Its remaining credits are forfeited.",
  fields: (t) => ({
    obstacle: t.field({
      type: AccountDeletionObstacle,
      nullable: true,
      description: "Why it cannot be deleted now. Null: it can.",
      resolve: ({ obstacle }) => obstacle,
    }),
    proof: t.field({ type: AccountDeletionProof, description: "What shows that it is the owner.", resolve: ({ proof }) => proof }),
    ...Object.fromEntries(
      (Object.keys(ENDED) as EndedKind[]).map((kind) => [
        kind,
        t.int({ description: `${ENDED[kind]} ${COUNTED}`, resolve: ({ ended }) => ended[kind] }),
      ]),
    ),
    keptUsageRecords: t.exposeInt("keptUsageRecords", {
      description: `Rows of usage that stay for the books, with the ledger: amounts, models and times, and no names. ${COUNTED}`,
    }),
  }),
});

builder.prismaObjectField(Account, "deletionPreview", (t) =>
  t.field({
    type: AccountDeletionPreview,
    nullable: true,
    description: "What its deletion would do. Sessions only.",
    complexity: EXPORT_COST,
    resolve: ({ id }, _args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.accountDeletions.preview(ctx);
    },
  }),
);

const DeleteAccountInput = builder.inputType("DeleteAccountInput", {
  description: "What confirms that the account is to be deleted.",
  fields: (t) => ({
    confirmHandle: t.string({
      required: true,
      description: "The account's handle: its credits are forfeited, and nothing brings it back.",
    }),
    password: t.string({ description: "The account's password, where it has one." }),
  }),
});

const DeleteAccountPayload = builder.objectRef<DeletedAccount>("DeleteAccountPayload").implement({
  description: "An account that is no more.",
  fields: (t) => ({
    deletedId: t.exposeID("accountId", { description: "The id that REST showed. The books go on referring to it." }),
    deletedAt: t.expose("deletedAt", { type: "DateTime", description: "When it was deleted." }),
    forfeited: t.field({
      type: "Credits",
      description: "What was free of its credits. What is set aside for generations under way is charged or forfeited when they end.",
      resolve: ({ forfeited }) => formatNanocredits(forfeited),
    }),
  }),
});

builder.mutationField("deleteAccount", (t) =>
  t.field({
    type: DeleteAccountPayload,
    nullable: true,
    description:
      "Deletes the account that is signed in: its keys, sessions, webhooks, models, agents, files and connected apps end at once, and its credits are forfeited. Usage and ledger stay, without names. Sessions only. Over HTTP only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DeleteAccountInput, required: true, description: "What confirms it." }) },
    resolve: (_root, { input }, ctx) =>
      answering(ctx, () => ctx.services.accountDeletions.delete(ctx, parsePermitted(ctx, requireSession, deleteAccountInput, input))),
  }),
);
