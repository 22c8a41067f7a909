/** What the routes about agents, connected apps, webhooks and community models answer; a part of `answers.ts`. */
import * as z from "zod";
import { PRICE_FIELDS } from "../../services/catalog/pricing.js";
import { CONNECTED_APP_STATUSES } from "../../services/integrations/broker.js";
import { MCP_SERVER_IDS } from "../../services/mcp/mcp-tools.js";

const details = {
  id: z.string(),
  name: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  visibility: z.enum(["private", "public"]),
  requiredSafetyFeatures: z.array(z.string()),
  createdAt: z.string(),
  updatedAt: z.string(),
};

const agent = z.discriminatedUnion("type", [
  z.object({
    ...details,
    type: z.literal("prompt_agent"),
    systemPrompt: z.string(),
    baseModel: z.string(),
    mcpServers: z.array(z.enum(MCP_SERVER_IDS)),
  }),
  z.object({
    ...details,
    type: z.literal("code_agent"),
    repository: z.string(),
    deployedCommitSha: z.string().describe("40 lowercase hexadecimal characters."),
  }),
]);

export const AGENT_ANSWERS = {
  Agent: agent,
  AgentList: z.object({ data: z.array(agent) }),
  DeletedAgent: z.object({ id: z.string() }),
} as const satisfies Record<string, z.ZodType>;

// Connected apps.

const nullableText = z.string().nullable();

const connectedApp = z.object({
  id: z.string(),
  toolkit: z.string().describe("The toolkit's slug."),
  name: nullableText,
  description: z.string(),
  logo: nullableText.describe("The address of a picture."),
  alias: nullableText.describe("What the person calls this connection."),
  status: z.enum(CONNECTED_APP_STATUSES),
});

const toolkit = z.object({ slug: z.string(), name: z.string(), description: z.string(), logo: nullableText });

export const INTEGRATION_ANSWERS = {
  ConnectedAppList: z.object({ data: z.array(connectedApp) }),
  ToolkitList: z.object({ data: z.array(toolkit) }),
  NewConnection: z.object({
    url: z.string().describe("The page on which a person signs in to the app and approves. Send a browser there."),
    id: z.string(),
  }),
} as const satisfies Record<string, z.ZodType>;

// Webhooks and low balances.

const webhookEndpoint = z.object({
  id: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  isEnabled: z.boolean(),
  disabledReason: z.enum(["gone", "failing"]).nullable().describe("Why the gateway disabled it."),
  failingSince: nullableText.describe("Since when every try has failed."),
  createdAt: z.string(),
});

const webhookDelivery = z.object({
  id: z.string().describe("The message's id: `webhook-id`."),
  event: z.string(),
  status: z.enum(["pending", "delivered", "failed"]),
  attempts: z.int().min(0),
  nextAttemptAt: nullableText,
  lastStatus: z.int().nullable(),
  lastError: nullableText,
  message: z.object({ type: z.string(), timestamp: z.string(), data: z.looseObject({}) }).describe("The body, as it is sent."),
  createdAt: z.string(),
  finishedAt: nullableText,
});

export const WEBHOOK_ANSWERS = {
  LowBalance: z.object({
    threshold: z.number().nullable().describe("Credits; null: not to be told."),
    since: nullableText.describe("Since when the balance has been below it."),
  }),
  WebhookEndpoint: webhookEndpoint,
  WebhookEndpointList: z.object({ data: z.array(webhookEndpoint) }),
  WebhookEndpointWithSecret: z.object({ ...webhookEndpoint.shape, secret: z.string().describe("`whsec_...`, shown this once.") }),
  DeletedWebhookEndpoint: z.object({ id: z.string(), deleted: z.literal(true) }),
  WebhookDelivery: webhookDelivery,
  WebhookDeliveryList: z.object({ data: z.array(webhookDelivery), nextCursor: nullableText, hasMore: z.boolean() }),
} as const satisfies Record<string, z.ZodType>;

// Community models.

const price = z.number().min(0).describe("Credits per unit: what it comes to when it is not stated.");
const prices = Object.fromEntries(PRICE_FIELDS.map((field) => [field, price]));
const perUserRpm = z.number().nullable().describe("Requests a minute of one account; 0.5 is one in two minutes. Null: no limit.");
const imagePricing = z.enum(["request", "tokens"]);
const api = z.enum(["chat_completions", "responses"]);

const common = {
  id: z.string(),
  modelId: z.string().describe("`community/<owner>/<name>`: what it is called by."),
  name: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  visibility: z.enum(["private", "public"]),
  requiredSafetyFeatures: z.array(z.string()),
  pending: z
    .looseObject({
      effectiveAt: z.string(),
      visibility: z.literal("public").optional(),
      paidOnly: z.boolean().optional(),
      imagePricing: imagePricing.optional(),
      ...Object.fromEntries(PRICE_FIELDS.map((field) => [field, price.optional()])),
    })
    .nullable()
    .describe("What the model will be from a moment on."),
  createdAt: z.string(),
  updatedAt: z.string(),
};

const proxy = {
  ...common,
  type: z.literal("proxy"),
  upstreamModel: z.string(),
  imagePricing,
  inputModalities: z.array(z.string()),
  advertised: z.looseObject({ capabilities: z.array(z.string()), contextLength: z.int().nullable() }),
  perUserRpm,
  paidOnly: z.boolean(),
  fallbacks: z.array(z.string()),
  ...prices,
};

const communityModel = z.union([
  z.looseObject({ ...proxy, modality: z.literal("text"), api, url: z.string().describe("The exact endpoint.") }),
  z.looseObject({
    ...proxy,
    modality: z.enum(["image", "video", "transcription", "speech", "embedding"]),
    baseUrl: z.string().describe("The base of the media API, or the endpoint."),
  }),
  z.looseObject({
    ...common,
    type: z.literal("endpoint_agent"),
    inputModalities: z.array(z.string()),
    outputModalities: z.array(z.string()),
    api,
    url: z.string(),
    upstreamModel: z.string(),
    perUserRpm,
  }),
  z.looseObject({ ...common, type: z.enum(["prompt_agent", "code_agent"]) }),
]);

export const MY_MODEL_ANSWERS = {
  CommunityModel: communityModel,
  CommunityModelList: z.object({
    data: z.array(communityModel),
    provider: z.looseObject({ name: z.string().nullable(), url: z.string().nullable(), iconUrl: z.string().nullable() }),
  }),
  CommunityModelTest: z.object({
    ok: z.boolean(),
    status: z.int().nullable().describe("The upstream's; null when it gave none."),
    upstreamCode: z.string().nullable().describe("Why, in a word of the gateway's own, such as model_not_found."),
    latencyMs: z.int().nullable(),
    message: z.string(),
  }),
  DeletedCommunityModel: z.object({ id: z.string() }),
  FallbackCandidateList: z.object({
    data: z.array(
      z.looseObject({
        modelId: z.string().describe("What `fallbacks` holds."),
        title: z.string(),
        description: z.string().nullable(),
        isOwn: z.boolean(),
        ...prices,
      }),
    ),
  }),
} as const satisfies Record<string, z.ZodType>;
