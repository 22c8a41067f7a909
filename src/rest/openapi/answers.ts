/**
 * Schemas of REST answers for the OpenAPI document. Objects stay open, because upstreams and later versions add fields.
 * `test/contract/openapi.test.ts` checks real answers against them.
 */
import * as z from "zod";
import { AGENT_ANSWERS, INTEGRATION_ANSWERS, MY_MODEL_ANSWERS, WEBHOOK_ANSWERS } from "./account-answers.js";

const credits = z.number().describe("An amount in credits. One credit is worth one US dollar.");
const seconds = z.int().describe("A Unix time in seconds.");
const nullableText = z.string().nullable();
const amount = z.int().min(0);
const calledModel = z.string().describe("The ID of the requested model. `X-Model-Used` has the model that answered.");

const openAiModel = z.looseObject({
  id: z.string(),
  object: z.literal("model"),
  created: z.int().describe("A Unix time in seconds."),
  owned_by: z.string(),
  aliases: z.array(z.string()),
  context_length: amount.nullable(),
  capabilities: z.array(z.string()),
  pricing: z.looseObject({ currency: z.literal("credits") }),
  input_modalities: z.array(z.string()),
  output_modalities: z.array(z.string()),
});

const catalogEntry = z.looseObject({
  name: z.string().describe("The canonical ID."),
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
  community: z.boolean().describe("Whether an account registered the model. `owner` is its handle."),
  agent: z.boolean(),
  owner: nullableText,
  per_user_rpm: z.number().nullable().describe("The limit of requests per minute and account."),
  health: z
    .object({ status: z.enum(["unknown", "healthy", "unreliable"]), success_rate: z.number().nullable(), requests: amount })
    .describe("Health of a registered model: calls of other accounts in the last 24 hours."),
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
    .describe("The scheduled change of a registered model. Contains only the fields that change."),
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
  start: z.string().describe("The first ten characters of the key."),
  expiresAt: nullableText,
  permissions: z.array(z.string()),
  creditBudget: credits
    .nullable()
    .describe(
      "The credits that the key can still spend: the smallest remaining budget of the key and the keys that created it. Null: unlimited.",
    ),
};

const listedApiKey = {
  ...apiKey,
  allowedModels: z.array(z.string()).nullable(),
  createdAt: z.string(),
  lastUsedAt: nullableText,
  parentId: nullableText.describe(
    "The key that created this one. This key also draws on the parent's budget, cannot exceed the parent's permissions, and ends with it. Null when no key created it.",
  ),
  origin: z.enum(["created", "redirect_flow", "device_flow"]),
  app: z
    .object({ id: z.string(), name: z.string() })
    .nullable()
    .describe("The app that the key was granted to, identified by its app key."),
  redirectUrls: z.array(z.string()).describe("For app keys: the URLs that the consent flow may redirect to. Empty: any safe URL."),
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
const mediaMetadata = {
  ...mediaFile,
  name: nullableText,
  expiresAt: nullableText.describe("When the file is deleted. Null: it is kept until an owner deletes it."),
};

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
  OAuthError: z.object({ error: z.string().describe("The error code of RFC 6749 or RFC 8628."), error_description: z.string() }),
  ChatCompletion: z.looseObject({
    id: z.string().optional(),
    object: z.string().optional(),
    created: seconds.optional(),
    model: calledModel,
    choices: z.array(z.looseObject({ index: z.int().optional(), message: chatMessage.nullish(), finish_reason: nullableText.optional() })),
    usage: chatUsage.nullish(),
  }),
  /** Not named `Response`, because generated clients have a type of that name. */
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
        embedding: z.union([z.array(z.number()), z.string()]).describe("Numbers, or base64 of little-endian 32-bit floats."),
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
    id: z.string().describe("The ID of the generation."),
    object: z.literal("video"),
    model: z.string(),
    status: z.enum(["in_progress", "completed", "failed"]),
    progress: z.int().min(0).max(100),
    prompt: nullableText,
    seconds: nullableText.describe("The requested length."),
    size: nullableText.describe("The requested size."),
    created_at: seconds,
    completed_at: seconds.nullable(),
    expires_at: seconds.describe("When the job and its video are deleted."),
    remixed_from_video_id: z.null(),
    error: z
      .object({ code: z.string(), message: z.string(), details: z.looseObject({}).optional().describe("The same as in error answers.") })
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
  CreatedApiKey: z.looseObject({ ...apiKey, key: z.string().describe("The complete key. It is shown only once.") }),
  RevokedApiKey: z.object({ id: z.string(), revoked: z.literal(true) }),
  CurrentApiKey: z.looseObject({
    valid: z.boolean(),
    type: z.enum(["secret", "publishable"]),
    name: z.string(),
    expiresAt: nullableText,
    expiresIn: amount.nullable().describe("Whole seconds until the key expires."),
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
    access_token: z.string().describe("The secret key. It is shown only once."),
    token_type: z.literal("bearer"),
    scope: z.string().describe("The granted permissions, separated by spaces."),
    expires_in: amount.describe("Seconds until the key expires."),
  }),
  AuthorizationServer: z.looseObject({ issuer: z.string(), authorization_endpoint: z.string(), token_endpoint: z.string() }),
  DeviceCode: z.object({
    device_code: z.string().describe("The secret code of the device."),
    user_code: z.string().describe("The user code to show, in the form XXXX-XXXX."),
    verification_uri: z.string(),
    verification_uri_complete: z.string().describe("The URL with the user code, for a QR code."),
    expires_in: amount.describe("Seconds until the codes expire."),
    interval: amount.describe("The minimum number of seconds between polls."),
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
