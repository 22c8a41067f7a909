/** The route that served a generation, in usage records and receipts (docs/spec/routing.md#receipts). */
import { formatNanocredits } from "../../lib/money.js";
import { isOperatorReading } from "../../services/access/permissions.js";
import { ATTEMPT_CODE_TEXTS, type Attempt, type AttemptCode } from "../../services/generation/routing/candidate.js";
import { builder, describedValues } from "../builder.js";
import type { GraphQLContext } from "../context.js";

const AttemptCodeEnum = builder.enumType("AttemptCode", {
  description: "Why a route was left for the next one.",
  values: describedValues<AttemptCode>(ATTEMPT_CODE_TEXTS),
});

export const VENDOR_KEY = "The REST ID of the account's vendor key that was called. Null: a key of the operator.";

export const UsageAttempt = builder.objectRef<Attempt>("UsageAttempt").implement({
  description: "A route that failed before the one that served.",
  fields: (t) => ({
    upstream: t.exposeString("upstream", { description: "The upstream of the route." }),
    code: t.expose("code", { type: AttemptCodeEnum, description: "Why the route was left." }),
    ms: t.exposeInt("ms", { description: "Milliseconds that the attempt took." }),
    vendorKeyId: t.id({ nullable: true, description: VENDOR_KEY, resolve: ({ vendorKeyId }) => vendorKeyId ?? null }),
    route: t.string({
      nullable: true,
      description: "The ID of the route. For operators; null for other callers.",
      resolve: ({ route }, _args, ctx) => (isOperatorReading(ctx) ? route : null),
    }),
  }),
});

export const UPSTREAM = "The upstream that served: its ID, or `community` for a registered model. Null when unknown.";
export const ATTEMPTS = "The routes that failed before the one that served, in order.";
export const UPSTREAM_COST = "What the operator pays for the generation. For operators; null for other callers and when unknown.";

export function shownCost(ctx: GraphQLContext, nanocredits: bigint | null): string | null {
  return nanocredits === null || !isOperatorReading(ctx) ? null : formatNanocredits(nanocredits);
}
