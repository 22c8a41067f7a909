/** Limits that renew (docs/spec/usage-limits.md). */
import * as z from "zod";
import { requireKeyManager } from "../../services/access/permissions.js";
import type { Services } from "../../services/services.js";
import { createUsageLimitInput, LIMIT_METRICS, LIMIT_PERIODS, updateUsageLimitInput } from "../../services/usage-limits/limit-input.js";
import { formatAmount } from "../../services/usage-limits/usage-limits.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { nullableText, pathId, time } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const decimal = z.string().describe("A decimal number of credits, or a whole number of requests, tokens or generations.");

const usageLimit = json(
  "UsageLimit",
  z.object({
    id: z.string(),
    accountId: nullableText.describe("Null: all accounts together, of one model."),
    apiKeyId: nullableText.describe("The key that it limits, with the keys made with it. Null: the whole account."),
    model: nullableText.describe("The model whose generations count. Null: every model."),
    metric: z.enum(LIMIT_METRICS),
    amount: decimal,
    period: z.enum(LIMIT_PERIODS).nullable(),
    minutes: z.int().nullable().describe("The length of the window, where `period` does not state it."),
    rolling: z.boolean(),
    timeZone: z.string(),
    alertAt: z.array(z.int()).describe("Percentages of the amount at which the account is notified."),
    raise: z.object({ amount: decimal, until: time }).nullable(),
    usage: z
      .object({ spent: decimal, remaining: decimal, percent: z.int(), renewsAt: time.nullable() })
      .nullable()
      .describe("The usage of the current window."),
    createdAt: time,
    updatedAt: time,
  }),
);
type UsageLimitAnswer = z.input<typeof usageLimit.schema>;

const byUsageLimit = z.object({ usageLimit: pathId("The ID of a usage limit.") });
const limitsQuery = z.strictObject({
  apiKeyId: z.uuid().optional().describe("Only limits of this key."),
  accountId: z.uuid().optional().describe("Limits of another account. Operators only."),
  allAccounts: z.enum(["true", "false"]).optional().describe("True: limits of models, over all accounts together. Operators only."),
});

export function addUsageLimitRoutes(route: Route, endpoint: Endpoint, { usageLimits }: Pick<Services, "usageLimits">): void {
  type Ctx = Parameters<typeof usageLimits.show>[0];
  type Row = Awaited<ReturnType<typeof usageLimits.show>>;
  const withUsage = async (ctx: Ctx, rows: readonly Row[]): Promise<UsageLimitAnswer[]> => {
    const usages = new Map(
      (
        await usageLimits.usageOf(
          ctx,
          rows.map(({ id }) => id),
        )
      ).map(({ id, ...usage }) => [id, usage]),
    );
    return rows.map((row) => ({ ...toAnswer(row), usage: usages.get(row.id) ?? null }));
  };
  const show = async (ctx: Ctx, id: string): Promise<UsageLimitAnswer> => {
    const [shown] = await withUsage(ctx, [await usageLimits.show(ctx, id)]);
    if (!shown) throw new Error("A shown limit has an answer");
    return shown;
  };

  route("/usage-limits", {
    GET: endpoint({
      id: "listUsageLimits",
      tag: "Keys",
      summary: "Lists limits that renew, of the account and its keys, newest first.",
      answer: json("UsageLimitList", z.object({ data: z.array(usageLimit.schema) })),
      requires: requireKeyManager,
      query: limitsQuery,
      handler: async (ctx, { query }) => ({ data: await withUsage(ctx, await usageLimits.all(ctx, toScope(query))) }),
    }),
    POST: endpoint({
      id: "createUsageLimit",
      tag: "Keys",
      summary: "Limits a key, or, for operators, an account or a model.",
      description:
        "State `apiKeyId`, or, as an operator, `accountId`, or `allAccounts` with `model`: a limit of requests, tokens or generations at once of the model, over all accounts together. A window is stated by `period` or `minutes`.",
      answer: usageLimit,
      example: { body: { apiKeyId: "01890a5d-ac96-774b-bcce-b302099a8057", metric: "credits", amount: 5, period: "day" } },
      requires: requireKeyManager,
      body: createUsageLimitInput,
      handler: async (ctx, { body }) => show(ctx, await usageLimits.create(ctx, body)),
    }),
  });
  route("/usage-limits/:usageLimit", {
    GET: endpoint({
      id: "getUsageLimit",
      tag: "Keys",
      summary: "Returns a limit with the usage of its window.",
      answer: usageLimit,
      params: byUsageLimit,
      handler: (ctx, { params }) => show(ctx, params.usageLimit),
    }),
    PATCH: endpoint({
      id: "updateUsageLimit",
      tag: "Keys",
      summary: "Changes a limit. Omitted fields do not change.",
      description: "`raise` adds to the amount until a time; null ends it.",
      answer: usageLimit,
      example: { body: { amount: 10 } },
      requires: requireKeyManager,
      params: byUsageLimit,
      body: updateUsageLimitInput,
      handler: async (ctx, { params, body }) => {
        await usageLimits.update(ctx, params.usageLimit, body);
        return show(ctx, params.usageLimit);
      },
    }),
    DELETE: endpoint({
      id: "deleteUsageLimit",
      tag: "Keys",
      summary: "Deletes a limit.",
      answer: json("DeletedUsageLimit", z.object({ id: z.string(), deleted: z.literal(true) })),
      params: byUsageLimit,
      handler: async (ctx, { params }) => ({ id: await usageLimits.delete(ctx, params.usageLimit), deleted: true as const }),
    }),
  });

  function toScope({ allAccounts, ...query }: z.output<typeof limitsQuery>) {
    return { ...query, allAccounts: allAccounts === "true" };
  }

  function toAnswer({ metric, amount, isRolling, raiseAmount, raiseUntil, ...same }: Row) {
    const raise = raiseUntil === null ? null : { amount: formatAmount(metric, raiseAmount), until: raiseUntil };
    return { ...same, metric, amount: formatAmount(metric, amount), rolling: isRolling, raise };
  }
}
