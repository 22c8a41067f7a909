/** Vendor keys of the account (docs/spec/vendor-keys.md). */
import * as z from "zod";
import { requireKeyManager } from "../../services/access/permissions.js";
import type { Services } from "../../services/services.js";
import { createVendorKeyInput, updateVendorKeyInput, VENDOR_KEY_USES, type VendorKeyRow } from "../../services/vendor-keys/vendor-keys.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { nullableText, pathId, time } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const vendorKey = json(
  "VendorKey",
  z.object({
    id: z.string(),
    vendor: z.string().describe("The ID of the upstream that gets it."),
    name: z.string(),
    ending: nullableText.describe("The last four characters of the secret. Null for a short one."),
    use: z.enum(VENDOR_KEY_USES).describe("Whether it is used before the operator's keys, after them, or as the only one."),
    models: z.array(z.string()).nullable().describe("The models whose calls use it. Null: every model of the vendor."),
    apiKeyIds: z
      .array(z.string())
      .nullable()
      .describe("The API keys whose calls use it. Null: every secret key and session of the account."),
    enabled: z.boolean(),
    refusal: z
      .enum(["credential_refused", "payment_required"])
      .nullable()
      .describe("Why the vendor refuses the key. Null: it was accepted last."),
    refusedAt: time.nullable(),
    createdAt: time,
    updatedAt: time,
  }),
);

const vendorKeyList = json(
  "VendorKeyList",
  z.object({
    data: z.array(vendorKey.schema),
    vendors: z.array(z.string()).describe("The vendors that take vendor keys."),
    feePercent: z.string().describe("The percentage of a model's price that a call by a vendor key is charged, as a decimal."),
  }),
);

const byVendorKey = z.object({ vendorKey: pathId("The ID of a vendor key.") });

export function addVendorKeyRoutes(route: Route, endpoint: Endpoint, { vendorKeys }: Pick<Services, "vendorKeys">): void {
  route("/vendor-keys", {
    GET: endpoint({
      id: "listVendorKeys",
      tag: "Keys",
      summary: "Lists the account's vendor keys, newest first, without their secrets.",
      answer: vendorKeyList,
      handler: async (ctx) => {
        const [keys, terms] = await Promise.all([vendorKeys.all(ctx), vendorKeys.terms(ctx)]);
        return { data: keys.map(toVendorKey), vendors: [...terms.vendors], feePercent: terms.feePercent };
      },
    }),
    POST: endpoint({
      id: "createVendorKey",
      tag: "Keys",
      summary: "Adds a key of the account at a vendor, after the vendor has accepted it.",
      description: "The vendor is asked for its models, or for the shortest chat, which the account pays there.",
      answer: vendorKey,
      example: { body: { vendor: "openai", secret: "sk-...", use: "before" } },
      requires: requireKeyManager,
      body: createVendorKeyInput,
      handler: async (ctx, { body }) => toVendorKey(await vendorKeys.show(ctx, await vendorKeys.create(ctx, body))),
    }),
  });
  route("/vendor-keys/:vendorKey", {
    GET: endpoint({
      id: "getVendorKey",
      tag: "Keys",
      summary: "Returns a vendor key, without its secret.",
      answer: vendorKey,
      params: byVendorKey,
      handler: async (ctx, { params }) => toVendorKey(await vendorKeys.show(ctx, params.vendorKey)),
    }),
    PATCH: endpoint({
      id: "updateVendorKey",
      tag: "Keys",
      summary: "Updates a vendor key. Omitted fields do not change.",
      description: "A new `secret` is checked at the vendor first.",
      answer: vendorKey,
      example: { body: { use: "only" } },
      requires: requireKeyManager,
      params: byVendorKey,
      body: updateVendorKeyInput,
      handler: async (ctx, { params, body }) => {
        await vendorKeys.update(ctx, params.vendorKey, body);
        return toVendorKey(await vendorKeys.show(ctx, params.vendorKey));
      },
    }),
    DELETE: endpoint({
      id: "deleteVendorKey",
      tag: "Keys",
      summary: "Deletes a vendor key.",
      answer: json("DeletedVendorKey", z.object({ id: z.string(), deleted: z.literal(true) })),
      params: byVendorKey,
      handler: async (ctx, { params }) => ({ id: await vendorKeys.delete(ctx, params.vendorKey), deleted: true as const }),
    }),
  });
}

function toVendorKey({ ending, models, apiKeyIds, isEnabled, refusal, ...same }: VendorKeyRow) {
  return {
    ...same,
    ending: ending === "" ? null : ending,
    models: models.length === 0 ? null : models,
    apiKeyIds: apiKeyIds.length === 0 ? null : apiKeyIds,
    enabled: isEnabled,
    refusal: refusal as "credential_refused" | "payment_required" | null,
  };
}
