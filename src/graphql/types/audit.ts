/** The audit log, for operators (docs/spec/accounts.md#audit-log). */
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import { type AuditEntryRow, auditFilter } from "../../services/audit/audit-log.js";
import { builder } from "../builder.js";
import { readId } from "../global-ids.js";
import { rowsBatchedBy } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { Account } from "./accounts.js";

const AuditAct = builder.enumType("AuditAct", {
  description: "The kind of an act.",
  values: {
    CREATE_ACCOUNT: { value: "create_account", description: "Created an account." },
    GRANT_CREDITS: { value: "grant_credits", description: "Granted credits. The object is the grant." },
    SELL_CREDITS: { value: "sell_credits", description: "Sold credits on an invoice. The object is the transaction." },
    RECORD_PAYMENT: { value: "record_payment", description: "Booked the money for an invoice. The object is the transaction." },
    RECORD_PAYOUT: { value: "record_payout", description: "Booked a payout of earnings. The object is its transaction." },
    REVERSE_EARNINGS: {
      value: "reverse_earnings",
      description: "Took back earnings from the account's charges. The object is their transaction.",
    },
    LINK_ACCOUNTS: {
      value: "link_accounts",
      description: "Linked accounts, which earn nothing from each other. The changed values are their REST IDs.",
    },
    UNLINK_ACCOUNT: { value: "unlink_account", description: "Ended the links of an account." },
    REFUND_TOP_UP: { value: "refund_top_up", description: "Paid a top-up back. The object is the top-up." },
    WITHDRAW_CREDITS: { value: "withdraw_credits", description: "Took credits back. The object is the ledger's transaction." },
    SET_TIER: { value: "set_tier", description: "Set the tier." },
    SET_PUBLISHER: { value: "set_publisher", description: "Allowed or forbade publishing." },
    SET_OPERATOR: { value: "set_operator", description: "Granted or removed operator rights." },
    SUSPEND_ACCOUNT: { value: "suspend_account", description: "Suspended an account." },
    RESTORE_ACCOUNT: { value: "restore_account", description: "Restored an account." },
    REVOKE_API_KEY: { value: "revoke_api_key", description: "Revoked a key of another account, and the keys made with it." },
    END_SESSIONS: { value: "end_sessions", description: "Ended all sessions of an account." },
    CREATE_PASSWORD_LINK: { value: "create_password_link", description: "Made a link to set a password." },
    USE_PASSWORD_LINK: { value: "use_password_link", description: "A password was set with a link." },
    RETRY_SETTLEMENTS: { value: "retry_settlements", description: "Retried charges that the database had refused." },
    RESEAL_SECRETS: { value: "reseal_secrets", description: "Sealed stored credentials again after a rotation of ENCRYPTION_KEY." },
    FORGET_SECRETS: { value: "forget_secrets", description: "Ended everything that a lost ENCRYPTION_KEY protected." },
    UPDATE_ROUTE: { value: "update_route", description: "Changed a route of a model." },
    ADD_ROUTE: { value: "add_route", description: "Added a route to a model." },
    REMOVE_ROUTE: { value: "remove_route", description: "Removed an added route of a model." },
    RESET_ROUTES: { value: "reset_routes", description: "Reset routes of a model to the configured ones." },
    SET_ROUTING: { value: "set_routing", description: "Set how the routes of a model are ordered." },
    CREATE_VENDOR_KEY: { value: "create_vendor_key", description: "Added a vendor key to the account." },
    UPDATE_VENDOR_KEY: { value: "update_vendor_key", description: "Changed a vendor key of the account." },
    DELETE_VENDOR_KEY: { value: "delete_vendor_key", description: "Deleted a vendor key of the account." },
    CREATE_USAGE_LIMIT: { value: "create_usage_limit", description: "Limited a key or the account." },
    UPDATE_USAGE_LIMIT: { value: "update_usage_limit", description: "Changed a usage limit." },
    DELETE_USAGE_LIMIT: { value: "delete_usage_limit", description: "Deleted a usage limit." },
    CREATE_OWNER_KEY: { value: "create_owner_key", description: "Made a key of the owner's account, on the command line." },
  } as const,
});

const accountOf = rowsBatchedBy((ctx, ids, select) => ctx.services.accounts.getMany(ctx, ids, select));

const AuditEntry = builder.objectRef<AuditEntryRow>("AuditEntry").implement({
  description: "An act of an operator. Entries are never changed or deleted. Visible to operators only.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.auditLog.getMany(ctx, ids))),
  fields: (t) => ({
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it happened." }),
    act: t.expose("act", { type: AuditAct, description: "The kind of the act." }),
    actor: t.field({
      type: Account,
      nullable: true,
      description: "The account of the operator. Null for the command line that works on the database itself.",
      resolve: ({ actorAccountId }, _args, ctx, info) => (actorAccountId === null ? null : accountOf(ctx, actorAccountId, info)),
    }),
    actorApiKeyId: t.exposeID("actorApiKeyId", { nullable: true, description: "The REST ID of the operator's key. Null for a session." }),
    account: t.field({
      type: Account,
      nullable: true,
      description: "The account that was changed. Null when the act concerns no account.",
      resolve: ({ accountId }, _args, ctx, info) => (accountId === null ? null : accountOf(ctx, accountId, info)),
    }),
    accountId: t.exposeID("accountId", { nullable: true, description: "The REST ID of the account that was changed." }),
    objectId: t.exposeID("objectId", { nullable: true, description: "The REST ID of the changed object, such as a key or a grant." }),
    before: t.field({
      type: "JSON",
      nullable: true,
      description: "The changed values before.",
      resolve: ({ before }) => before,
    }),
    after: t.field({ type: "JSON", nullable: true, description: "The changed values after.", resolve: ({ after }) => after }),
    reason: t.exposeString("reason", { nullable: true, description: "The operator's reason. Null when none was given." }),
    address: t.exposeString("address", { nullable: true, description: "The client's address. Null for the command line." }),
    requestId: t.exposeID("requestId", { nullable: true, description: "The request ID. Null for the command line." }),
  }),
});

const AuditFilter = builder.inputType("AuditFilter", {
  description: "Filters for the audit log. An entry must match all of them.",
  fields: (t) => ({
    acts: t.field({ type: [AuditAct], description: "One of these acts." }),
    accountIds: t.idList({ description: "One of these accounts was changed. At most 100." }),
    actorAccountIds: t.idList({ description: "One of these operators did it. At most 100." }),
    objectId: t.id({ description: "The changed object, by its REST ID." }),
    requestId: t.string({ description: "The request ID." }),
    from: t.field({ type: "DateTime", description: "At this time or later." }),
    to: t.field({ type: "DateTime", description: "Before this time." }),
  }),
});

builder.queryField("auditLog", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: AuditEntry, name: "AuditEntryConnection", description: "A page of the audit log." },
      { name: "AuditEntryEdge", description: "An entry of the audit log and its cursor." },
    ),
    nullable: true,
    description: "The audit log, newest first. Operators only.",
    args: { ...pageArgs, filter: t.arg({ type: AuditFilter, description: "Filters. Defaults to all entries." }) },
    complexity: pageCost,
    resolve: async (_root, { filter, ...args }, ctx) => {
      const ids = (list: readonly string[] | null | undefined, param: string) =>
        list?.map((id, index) => readId(id, "Account", `filter.${param}.${index}`));
      const input = () => ({
        ...filter,
        accountIds: ids(filter?.accountIds, "accountIds"),
        actorAccountIds: ids(filter?.actorAccountIds, "actorAccountIds"),
      });
      const parsed = parsePermitted(ctx, requireOperator, auditFilter, input);
      return toConnection(await ctx.services.auditLog.list(ctx, toPageRequest(args, "auditLog"), parsed), "auditLog", createdPosition);
    },
  }),
);
