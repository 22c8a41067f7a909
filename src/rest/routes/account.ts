/** The caller's account: profile, balance, and low-balance threshold (docs/spec/accounts.md). */
import * as z from "zod";
import { toCreditsNumber } from "../../lib/money.js";
import { encodeCursor } from "../../lib/pagination.js";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../../limits.js";
import { permissionOf, requireAccount, requireKeyManager, requireSession } from "../../services/access/permissions.js";
import type { AccountRow } from "../../services/accounts/accounts.js";
import type { LedgerLine } from "../../services/accounts/credit-grants.js";
import { statementPosition } from "../../services/accounts/credit-statement.js";
import { updateProfileInput } from "../../services/accounts/profiles.js";
import { type LowBalanceRow, setLowBalanceThresholdInput } from "../../services/credits/low-balance.js";
import { queryInteger } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { amount, credits, cursorText, nullableText, time } from "../openapi/schemas.js";
import { queryCursor } from "../query.js";
import type { Route } from "../route.js";

const profile = json(
  "Profile",
  z.looseObject({
    name: nullableText,
    email: nullableText,
    githubUsername: nullableText,
    image: nullableText,
    tier: nullableText,
    createdAt: time,
    nextResetAt: time.nullable(),
  }),
);

const balance = json("Balance", z.object({ balance: credits }));

const lowBalance = json(
  "LowBalance",
  z.object({
    threshold: z.number().nullable().describe("The balance in credits below which the alert is sent. Null: no alert."),
    since: time.nullable().describe("Since when the balance has been below the threshold."),
  }),
);

export function addAccountRoutes(route: Route, endpoint: Endpoint, { accounts, profiles }: Pick<Services, "accounts" | "profiles">): void {
  route("/profile", {
    GET: endpoint({
      id: "getProfile",
      tag: "Account",
      summary: "Returns the profile of the account (permission `profile`).",
      answer: profile,
      handler: async (ctx) => toProfile(await accounts.profile(ctx)),
    }),
    PATCH: endpoint({
      id: "updateProfile",
      tag: "Account",
      summary: "Updates the profile of the account. Sessions only.",
      answer: profile,
      example: { body: { name: "Ada" } },
      requires: requireSession,
      body: updateProfileInput,
      handler: async (ctx, { body }) => {
        await profiles.update(ctx, body);
        const account = await accounts.profile(ctx);
        return { ...toProfile(account), handle: account.handle };
      },
    }),
  });
  route("/balance", {
    GET: endpoint({
      id: "getBalance",
      tag: "Account",
      summary: "Returns the available credits (permission `balance`).",
      description: "For a key with its own budget, the rest of that budget.",
      answer: balance,
      handler: async (ctx) => toBalance(await accounts.balance(ctx)),
    }),
  });
}

const ledgerLine = z.looseObject({
  kind: z.enum(["grant", "refill", "charge", "withdrawal", "forfeit", "purchase", "refund", "expiry", "conversion"]),
  bookedAt: time.describe("When the credits were added or taken. For charges, the start of their day (UTC)."),
  bucket: z.enum(["tier", "crypto", "pack"]).nullable(),
  credits: credits.describe("The number of credits. Below 0 when they were taken."),
  requests: amount.nullable().describe("The number of requests of the day. Null for other kinds."),
  note: nullableText,
  expiresAt: time.nullable().describe("When the next refill replaces these credits. Null: never."),
  balanceAfter: credits,
});

const ledgerQuery = z.object({
  limit: queryInteger(z.int().min(1).max(PAGE_SIZE_MAX)).default(PAGE_SIZE_DEFAULT).describe("The maximum number of lines."),
  cursor: queryCursor("ledger").optional().describe(cursorText),
});

export function addLedgerRoutes(route: Route, endpoint: Endpoint, { creditGrants }: Pick<Services, "creditGrants">): void {
  route("/ledger", {
    GET: endpoint({
      id: "listLedger",
      tag: "Account",
      summary: "Lists grants, refills and the charges of each day, newest first (permission `balance`).",
      answer: json("Ledger", z.looseObject({ ledger: z.array(ledgerLine), nextCursor: nullableText })),
      requires: permissionOf("balance"),
      query: ledgerQuery,
      handler: async (ctx, { query: { limit, cursor } }) => {
        const { accountId } = requireAccount(ctx);
        const { items, hasNextPage } = await creditGrants.statement(ctx, accountId, { first: limit, after: cursor });
        const last = items.at(-1);
        const nextCursor = hasNextPage && last ? encodeCursor(statementPosition(last), "ledger") : null;
        return { ledger: items.map(toLedgerLine), nextCursor };
      },
    }),
  });
}

function toLedgerLine({ kind, bookedAt, bucket, nanocredits, requests, note, expiresAt, balanceAfter }: LedgerLine) {
  const amounts = { credits: toCreditsNumber(nanocredits), balanceAfter: toCreditsNumber(balanceAfter) };
  return { kind, bookedAt, bucket, ...amounts, requests, note, expiresAt };
}

export function addLowBalanceRoutes(route: Route, endpoint: Endpoint, services: Pick<Services, "lowBalance">): void {
  route("/balance/threshold", {
    GET: endpoint({
      id: "getLowBalanceThreshold",
      tag: "Account",
      summary: "Returns the low-balance alert (permission `balance`).",
      answer: lowBalance,
      handler: async (ctx) => toLowBalance(await services.lowBalance.get(ctx)),
    }),
    PATCH: endpoint({
      id: "setLowBalanceThreshold",
      tag: "Account",
      summary: "Sets the threshold of the low-balance alert (a secret key with `keys`).",
      description:
        "Each fall of the balance below the threshold is sent once, by the webhook `balance.low` and the GraphQL subscription `balanceLow`.",
      answer: lowBalance,
      example: { body: { threshold: 1 } },
      requires: requireKeyManager,
      body: setLowBalanceThresholdInput,
      handler: async (ctx, { body }) => toLowBalance(await services.lowBalance.setThreshold(ctx, body)),
    }),
  });
}

function toLowBalance({ threshold, since }: LowBalanceRow) {
  return { threshold: threshold === null ? null : toCreditsNumber(threshold), since };
}

function toProfile({ name, email, githubUsername, image, tier, createdAt, nextResetAt }: AccountRow) {
  return { name, email, githubUsername, image, tier, createdAt, nextResetAt };
}

/** In credits. */
function toBalance({ balance }: { readonly balance: bigint }) {
  return { balance: toCreditsNumber(balance) };
}
