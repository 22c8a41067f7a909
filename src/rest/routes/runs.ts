/** Runs: an envelope of credits and time for a series of calls (docs/spec/runs.md). */
import * as z from "zod";
import { toCreditsNumber } from "../../lib/money.js";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../../limits.js";
import { parseInput } from "../../services/requests/input.js";
import { queryInteger } from "../../services/requests/query-values.js";
import { approveRunInput, askedOf, leftOf, RUN_ROW, type RunRow, requirePayer, runFields, statusOf } from "../../services/runs/runs.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { credits, cursorText, nullableText, pathId, time } from "../openapi/schemas.js";
import { nextCursorOf, queryCursor } from "../query.js";
import type { Route } from "../route.js";

const createRunBody = z.strictObject({
  max_cost: runFields.maxCost.describe("The most that all calls of the run, and of the runs below it, may cost."),
  ttl: runFields.ttl
    .nullish()
    .describe("Seconds until the run expires. Defaults to an hour, or to the calling key's expiry if that is earlier."),
  label: runFields.label.nullish().describe("A name to find the run by."),
  on_limit: runFields.onLimit
    .nullish()
    .describe("The effect on a call at the limit: `refuse` answers 402 (default), `ask` lets it wait up to five minutes for the payer."),
});

const run = json(
  "Run",
  z.object({
    id: z.string(),
    label: nullableText,
    status: z.enum(["open", "ended", "expired"]),
    parent_id: nullableText.describe("The key that created the run; null: a signed-in person."),
    max_cost: credits,
    spent: credits.describe("The cost of the calls of the run and of the runs below it."),
    held: credits.describe("Credits that are set aside for calls under way."),
    left: credits.describe("Credits that are not spent yet."),
    on_limit: z.enum(["refuse", "ask"]),
    asked: credits.nullable().describe("Credits that a waiting call lacks; null: no call waits."),
    created_at: time,
    expires_at: time,
  }),
);

const createdRun = json(
  "CreatedRun",
  z.object({ id: z.string(), key: z.string().describe("The key of the run. It is shown only once."), expires_at: time }),
);

const runList = json("RunList", z.object({ data: z.array(run.schema), next_cursor: nullableText }));

const listQuery = z.object({
  limit: queryInteger(z.int().min(1).max(PAGE_SIZE_MAX)).default(PAGE_SIZE_DEFAULT).describe("The maximum number of runs."),
  cursor: queryCursor("runs").optional().describe(cursorText),
});

const byId = z.object({ id: pathId("The ID of the run.") });
const PARAMS = { maxCost: "max_cost", ttl: "ttl" } as const;

const IDEMPOTENCY_KEY = "Idempotency-Key";
const APPROVAL_PARAMS = { amount: "amount", idempotencyKey: IDEMPOTENCY_KEY } as const;
const approveRunBody = approveRunInput.pick({ amount: true });
const idempotencyKeyHeader = z.object({ [IDEMPOTENCY_KEY]: approveRunInput.shape.idempotencyKey.unwrap().unwrap() });

export function addRunRoutes(route: Route, endpoint: Endpoint, { runs }: Pick<Services, "runs">): void {
  route("/v1/runs", {
    GET: endpoint({
      id: "listRuns",
      tag: "Runs",
      summary: "Lists runs, newest first: of the account for a key that manages keys, else those that the calling key created.",
      answer: runList,
      requires: requirePayer,
      query: listQuery,
      handler: async (ctx, { query }) => {
        const page = await runs.list(ctx, { first: query.limit, after: query.cursor }, RUN_ROW);
        return { data: page.items.map(toRun), next_cursor: nextCursorOf(page, "runs") };
      },
    }),
    POST: endpoint({
      id: "createRun",
      tag: "Runs",
      summary: "Creates a run: a key for a series of calls that may cost so much in all, and expires.",
      description: "A key makes a run below itself; the run draws on that key's budget too. The key of a run makes runs below it.",
      answer: createdRun,
      example: { body: { max_cost: 0.5, ttl: 900, label: "Night report" } },
      requires: requirePayer,
      body: createRunBody,
      handler: async (ctx, { body, exchange }) => {
        const { max_cost: maxCost, ttl, label, on_limit: onLimit } = body;
        const created = await runs.create(ctx, { maxCost, ttl, label, onLimit }, PARAMS);
        exchange.setHeaders({ "Cache-Control": "no-store" });
        return { id: created.id, key: created.key, expires_at: created.expiresAt };
      },
    }),
  });
  route("/v1/runs/:id", {
    GET: endpoint({
      id: "getRun",
      tag: "Runs",
      summary: "Returns a run. Its own key may read it too.",
      answer: run,
      params: byId,
      handler: async (ctx, { params }) => toRun(await runs.get(ctx, params.id, RUN_ROW)),
    }),
  });
  route("/v1/runs/:id/end", {
    POST: endpoint({
      id: "endRun",
      tag: "Runs",
      summary: "Ends a run and all runs below it, with the calls under way, on all processes within a second.",
      answer: run,
      params: byId,
      handler: async (ctx, { params }) => {
        await runs.end(ctx, params.id);
        return toRun(await runs.get(ctx, params.id, RUN_ROW));
      },
    }),
  });
  route("/v1/runs/:id/approve", {
    POST: endpoint({
      id: "approveRun",
      tag: "Runs",
      summary: "Raises the limit of a run, so that calls that wait for it go on. Not with the key of the run itself.",
      answer: run,
      example: { body: { amount: 0.25 } },
      requires: requirePayer,
      params: byId,
      body: approveRunBody,
      takesIdempotencyKey: true,
      handler: async (ctx, { params, body: { amount }, exchange }) => {
        const key = exchange.req.headers["idempotency-key"] ?? null;
        const idempotencyKey = key === null ? null : parseInput(idempotencyKeyHeader, { [IDEMPOTENCY_KEY]: key })[IDEMPOTENCY_KEY];
        const isNew = await runs.approve(ctx, params.id, { amount, idempotencyKey, params: APPROVAL_PARAMS });
        if (!isNew) exchange.setHeaders({ "X-Idempotent-Replay": "true" });
        return toRun(await runs.get(ctx, params.id, RUN_ROW));
      },
    }),
  });
}

function toRun(row: RunRow) {
  const { key } = row;
  const now = new Date();
  const asked = askedOf(row, now);
  return {
    id: row.id,
    label: row.label,
    status: statusOf(key, now),
    parent_id: key.parentId,
    max_cost: toCreditsNumber(key.budgetNanocredits ?? 0n),
    spent: toCreditsNumber(key.spentNanocredits),
    held: toCreditsNumber(key.heldNanocredits),
    left: toCreditsNumber(leftOf(key)),
    on_limit: row.onLimit,
    asked: asked === null ? null : toCreditsNumber(asked),
    created_at: row.createdAt,
    expires_at: key.expiresAt ?? row.createdAt,
  };
}
