/** What is probed: an upstream as it would be registered, or one of the account's models as it is (docs/spec/community-models.md#probe). */
import { z } from "zod";
import { bearerToken, PROXY_MODALITIES, upstreamApi, upstreamModel, upstreamUrl } from "./models-input.js";

const DESCRIBING = ["modality", "api", "url", "baseUrl", "bearerToken", "upstreamModel"] as const;

/**
 * Unspecified: `id` is that of a registered model, and stands alone: with another address it would send the credential there. Without
 * it the fields are those of a registration, and an upstream that wants no credential is probed without one.
 */
export const testCommunityModelInput = z
  .strictObject({
    id: z.string().min(1).optional(),
    modality: z.enum(PROXY_MODALITIES).optional(),
    api: upstreamApi.optional(),
    url: upstreamUrl.optional(),
    baseUrl: upstreamUrl.optional(),
    bearerToken: bearerToken.optional(),
    upstreamModel: upstreamModel.optional(),
  })
  .superRefine((input, issues) => {
    const isText = (input.modality ?? "text") === "text";
    const needed = isText ? (["api", "url", "upstreamModel"] as const) : (["baseUrl", "upstreamModel"] as const);
    const refused = isText ? (["baseUrl"] as const) : (["api", "url"] as const);
    const refuse = (field: string, message: string) => issues.addIssue({ code: "custom", path: [field], message, input });
    if (input.id !== undefined) {
      for (const field of DESCRIBING)
        if (input[field] !== undefined) refuse(field, "must be left out: what the registered model has is used");
      return;
    }
    for (const field of needed) if (input[field] === undefined) refuse(field, "is required");
    for (const field of refused) if (input[field] !== undefined) refuse(field, `is not used with modality ${input.modality ?? "text"}`);
  })
  // The same, as it is described.
  .meta({
    oneOf: [
      { required: ["id"], maxProperties: 1 },
      { required: ["api", "url", "upstreamModel"], properties: { modality: { const: "text" }, id: false, baseUrl: false } },
      {
        required: ["modality", "baseUrl", "upstreamModel"],
        properties: { modality: { not: { const: "text" } }, id: false, api: false, url: false },
      },
    ],
  });
export type TestCommunityModelInput = z.output<typeof testCommunityModelInput>;
