/**
 * What the REST routes answer, as the OpenAPI document describes it. Objects stay open: upstreams add fields of their own, and
 * so may later versions. `test/contract/openapi.test.ts` holds real answers against them.
 */
import * as z from "zod";
import { AGENT_ANSWERS, INTEGRATION_ANSWERS, MY_MODEL_ANSWERS, WEBHOOK_ANSWERS } from "./account-answers.js";

const credits = z.number().describe("Credits; one is worth one US dollar.");
const seconds = z.int().describe("Unix time in seconds.");
const nullableText = z.string().nullable();
const amount = z.int().min(0);
const calledModel = z.string().describe("The id of the model that was called. Who served is in `X-Model-Used`.");

// The catalog.

const openAiModel = z.looseObject({
  id: z.string(),
  object: z.literal("model"),
  created: z.int().describe("Unix time in seconds."),
  owned_by: z.string(),
  aliases: z.array(z.string()),
  context_length: amount.nullable(),
  capabilities: z.array(z.string()),
  pricing: z.looseObject({ currency: z.literal("credits") }),
  input_modalities: z.array(z.string()),
  output_modalities: z.array(z.string()),
});

const catalogEntry = z.looseObject({
  name: z.string().describe("The canonical id."),
  aliases: z.array(z.string()),
  publisher: z.string(),
  brand_url: nullableText,
  title: z.string(),
  description: nullableText,
  category: z.enum(["text", "image", "video", "audio", "embedding", "realtime"]),
  input_modalities: z.array(z.string()),
  output_modalities: z.array(z.string()),
  capabilities: z.array(z.string()),
  flags: z.looseObject({ paid: z.boolean(), alpha: z.boolean() }),
  pricing: z.looseObject({ currency: z.literal("credits") }),
  context_length: amount.nullable(),
  voices: z.array(z.string()),
  community: z.boolean().describe("Registered by an account, whose handle is `owner`."),
  agent: z.boolean(),
  owner: nullableText,
  per_user_rpm: z.number().nullable().describe("Requests a minute of one account."),
  health: z
    .object({ status: z.enum(["unknown", "healthy", "unreliable"]), success_rate: z.number().nullable(), requests: amount })
    .describe("Of others' calls of a registered model in the last 24 hours."),
  added_at: z.string(),
  pending_change: z
    .looseObject({
      effective_at: z.string(),
      visibility: z.literal("public").optional(),
      paid_only: z.boolean().optional(),
      image_pricing: z.enum(["request", "tokens"]).optional(),
      pricing: z.looseObject({ currency: z.literal("credits") }).optional(),
    })
    .nullable()
    .describe("What a registered model will be from a moment on. Only what changes is there."),
});

const CATALOG_ANSWERS = {
  Model: openAiModel,
  ModelList: z.object({ object: z.literal("list"), data: z.array(openAiModel) }),
  Catalog: z.array(catalogEntry),
} as const satisfies Record<string, z.ZodType>;

const chatUsage = z.looseObject({
  prompt_tokens: amount,
  completion_tokens: amount,
  total_tokens: amount,
});

const chatMessage = z.looseObject({
  role: z.string().optional(),
  content: z.union([z.string(), z.array(z.unknown())]).nullish(),
  refusal: nullableText.optional(),
  tool_calls: z
    .array(
      z.looseObject({
        id: z.string().optional(),
        type: z.string().optional(),
        function: z.looseObject({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
      }),
    )
    .nullish(),
});

const apiKey = {
  id: z.string(),
  name: z.string(),
  type: z.enum(["secret", "publishable"]),
  prefix: z.enum(["sk", "pk"]),
  start: z.string().describe("The first ten characters."),
  expiresAt: nullableText,
  permissions: z.array(z.string()),
  creditBudget: credits
    .nullable()
    .describe(
      "Credits that it can still spend: the smallest of what remains of its budget and of those of the keys that made it. Null: unlimited.",
    ),
};

const listedApiKey = {
  ...apiKey,
  allowedModels: z.array(z.string()).nullable(),
  createdAt: z.string(),
  lastUsedAt: nullableText,
  parentId: nullableText.describe(
    "The key that made it: it draws on that key's budget too, may do nothing that it may not, and ends with it. Null: no key did.",
  ),
  origin: z.enum(["created", "redirect_flow", "device_flow"]),
  app: z.object({ id: z.string(), name: z.string() }).nullable().describe("The app that it was granted to, by its app key."),
  redirectUrls: z.array(z.string()).describe("Of an app key: where its consent flow may return to. Empty: anywhere that is safe."),
};

const tokenColumns = Object.fromEntries(
  [
    "input_text_tokens",
    "input_cached_tokens",
    "input_cache_write_tokens",
    "input_audio_tokens",
    "input_image_tokens",
    "output_text_tokens",
    "output_reasoning_tokens",
    "output_audio_tokens",
    "output_image_tokens",
  ].map((name) => [name, amount]),
);

const usageRow = z.looseObject({
  id: z.string(),
  timestamp: z.string(),
  type: z.string(),
  model: z.string(),
  api_key_id: nullableText,
  api_key: nullableText,
  api_key_type: nullableText,
  meter_source: z.enum(["tier", "crypto", "pack"]),
  ...tokenColumns,
  output_video_seconds: z.number(),
  output_audio_seconds: z.number(),
  cost_usd: credits,
  response_time_ms: amount,
  time_to_first_token_ms: amount.nullable(),
  status: z.enum(["ok", "cancelled"]),
  usage_source: z.enum(["provider", "estimated", "partial", "bounded"]),
  request_id: z.string(),
  parent_request_id: nullableText,
});

const mediaFile = { id: z.string(), contentType: z.string(), size: amount, tags: z.array(z.string()), createdAt: z.string() };
const mediaMetadata = { ...mediaFile, name: nullableText, expiresAt: nullableText.describe("Null: kept until it is deleted.") };

export const ANSWERS = {
  Error: z.object({
    status: z.int(),
    success: z.literal(false),
    error: z.object({
      code: z.string(),
      message: z.string(),
      type: z.string(),
      param: nullableText,
      requestId: z.string(),
      timestamp: z.string(),
      details: z.looseObject({}).optional(),
    }),
  }),
  OAuthError: z.object({ error: z.string().describe("By its name in RFC 6749 or RFC 8628."), error_description: z.string() }),
  ChatCompletion: z.looseObject({
    id: z.string().optional(),
    object: z.string().optional(),
    created: seconds.optional(),
    model: calledModel,
    choices: z.array(z.looseObject({ index: z.int().optional(), message: chatMessage.nullish(), finish_reason: nullableText.optional() })),
    usage: chatUsage.nullish(),
  }),
  /** Not `Response`, which generated clients have of their own. */
  ModelResponse: z.looseObject({
    id: z.string(),
    object: z.literal("response"),
    created_at: seconds,
    status: z.enum(["completed", "incomplete"]),
    model: calledModel,
    output: z.array(z.looseObject({ type: z.string(), id: z.string() })),
    usage: z.looseObject({ input_tokens: amount, output_tokens: amount, total_tokens: amount }),
  }),
  Images: z.looseObject({
    created: seconds,
    data: z.array(z.looseObject({ b64_json: z.string().optional(), url: z.string().optional(), revised_prompt: z.string().optional() })),
  }),
  Transcription: z.looseObject({ text: z.string() }),
  Embeddings: z.looseObject({
    object: z.literal("list"),
    model: calledModel,
    data: z.array(
      z.looseObject({
        object: z.literal("embedding"),
        index: z.int(),
        embedding: z.union([z.array(z.number()), z.string()]).describe("Numbers, or little-endian 32-bit floats in base64."),
      }),
    ),
    usage: z.looseObject({ prompt_tokens: amount, total_tokens: amount }),
  }),
  Moderation: z.looseObject({
    id: z.string(),
    model: calledModel,
    results: z.array(
      z.looseObject({
        flagged: z.boolean(),
        categories: z.record(z.string(), z.boolean()),
        category_scores: z.record(z.string(), z.number()),
      }),
    ),
  }),
  ...CATALOG_ANSWERS,
  DeletedVideo: z.object({ id: z.string(), object: z.literal("video.deleted"), deleted: z.literal(true) }),
  Video: z.object({
    id: z.string().describe("The generation's id."),
    object: z.literal("video"),
    model: z.string(),
    status: z.enum(["in_progress", "completed", "failed"]),
    progress: z.int().min(0).max(100),
    prompt: nullableText,
    seconds: nullableText.describe("As asked for."),
    size: nullableText.describe("As asked for."),
    created_at: seconds,
    completed_at: seconds.nullable(),
    expires_at: seconds.describe("When it is forgotten, and the video with it."),
    remixed_from_video_id: z.null(),
    error: z
      .object({ code: z.string(), message: z.string(), details: z.looseObject({}).optional().describe("As in an error answer.") })
      .nullable(),
  }),
  Profile: z.looseObject({
    name: nullableText,
    email: nullableText,
    githubUsername: nullableText,
    image: nullableText,
    tier: nullableText,
    createdAt: z.string(),
    nextResetAt: nullableText,
  }),
  Balance: z.object({ balance: credits }),
  Sessions: z.object({
    data: z.array(
      z.looseObject({
        id: z.string(),
        createdAt: z.string(),
        expiresAt: z.string(),
        userAgent: nullableText,
        ipAddress: nullableText,
        isCurrent: z.boolean(),
      }),
    ),
  }),
  EndedSessions: z.object({ ended: amount }),
  RevokedSession: z.object({ id: z.string(), revoked: z.literal(true) }),
  SyncedAgent: z.object({ updated: z.boolean(), deployedCommitSha: z.string().regex(/^[0-9a-f]{40}$/) }),
  ...AGENT_ANSWERS,
  ...MY_MODEL_ANSWERS,
  ...WEBHOOK_ANSWERS,
  ...INTEGRATION_ANSWERS,
  ApiKeyList: z.object({
    data: z.array(z.looseObject(listedApiKey)),
  }),
  ApiKey: z.looseObject(listedApiKey),
  CreatedApiKey: z.looseObject({ ...apiKey, key: z.string().describe("The whole key, shown this once.") }),
  RevokedApiKey: z.object({ id: z.string(), revoked: z.literal(true) }),
  CurrentApiKey: z.looseObject({
    valid: z.boolean(),
    type: z.enum(["secret", "publishable"]),
    name: z.string(),
    expiresAt: nullableText,
    expiresIn: amount.nullable().describe("Whole seconds left."),
    permissions: z.array(z.string()),
    creditBudget: credits.nullable(),
    rateLimitEnabled: z.boolean(),
  }),
  Usage: z.looseObject({ usage: z.array(usageRow), count: amount, next_before: nullableText, next_before_id: nullableText }),
  UsageDaily: z.looseObject({
    usage: z.array(z.looseObject({ date: z.string(), model: z.string(), meter_source: z.string(), requests: amount, cost_usd: credits })),
    count: amount,
    as_of: z.string(),
  }),
  AppUsageDaily: z.looseObject({
    usage: z.array(z.looseObject({ date: z.string(), model: z.string(), requests: amount, cost_usd: credits })),
    count: amount,
    total: z.looseObject({ requests: amount, cost_usd: credits }),
    as_of: z.string(),
  }),
  Token: z.object({
    access_token: z.string().describe("A secret key, shown this once."),
    token_type: z.literal("bearer"),
    scope: z.string().describe("The permissions that were granted, with spaces between them."),
    expires_in: amount.describe("Seconds until the key expires."),
  }),
  AuthorizationServer: z.looseObject({ issuer: z.string(), authorization_endpoint: z.string(), token_endpoint: z.string() }),
  DeviceCode: z.object({
    device_code: z.string().describe("The device's own; nobody else sees it."),
    user_code: z.string().describe("XXXX-XXXX, to be shown."),
    verification_uri: z.string(),
    verification_uri_complete: z.string().describe("With the user code in it, for a QR code."),
    expires_in: amount.describe("Seconds."),
    interval: amount.describe("Seconds to wait between two polls."),
  }),
  UserInfo: z.looseObject({
    sub: z.string(),
    preferred_username: z.string(),
    picture: nullableText,
    name: nullableText.optional(),
    email: nullableText.optional(),
    email_verified: z.boolean().optional(),
  }),
  Service: z.looseObject({ name: z.string(), description: z.string(), links: z.record(z.string(), z.string()) }),
  Status: z.object({ status: z.string() }),
  MediaHost: z.looseObject({ name: z.string(), version: z.string() }),
  MediaUpload: z.union([
    z.looseObject({ id: z.string(), url: z.string(), contentType: z.string(), size: amount, duplicate: z.boolean() }),
    z.looseObject({
      id: z.string(),
      uploadUrl: z.string(),
      method: z.literal("PUT"),
      headers: z.record(z.string(), z.string()),
      expiresAt: z.string(),
    }),
  ]),
  MediaObject: z.looseObject({ ...mediaFile, url: z.string() }),
  MediaMetadata: z.looseObject(mediaMetadata),
  MediaList: z.looseObject({
    items: z.array(z.looseObject({ ...mediaMetadata, url: z.string() })),
    nextCursor: z.string().nullable(),
    hasMore: z.boolean(),
  }),
  DeletedMedia: z.looseObject({ id: z.string(), deleted: z.literal(true) }),
  OpenApi: z.looseObject({ openapi: z.string() }),
} as const satisfies Record<string, z.ZodType>;

export type AnswerName = keyof typeof ANSWERS;
