/** Answers of the routes for agents, connected apps, webhooks and community models. Part of `answers.ts`. */
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

const nullableText = z.string().nullable();

const connectedApp = z.object({
  id: z.string(),
  toolkit: z.string().describe("The slug of the toolkit."),
  name: nullableText,
  description: z.string(),
  logo: nullableText.describe("The URL of the logo."),
  alias: nullableText.describe("The person's own name for the connection."),
  status: z.enum(CONNECTED_APP_STATUSES),
});

const toolkit = z.object({ slug: z.string(), name: z.string(), description: z.string(), logo: nullableText });

export const INTEGRATION_ANSWERS = {
  ConnectedAppList: z.object({ data: z.array(connectedApp) }),
  ToolkitList: z.object({ data: z.array(toolkit) }),
  NewConnection: z.object({
    url: z.string().describe("The URL at which a person signs in to the app and approves the connection. Open it in a browser."),
    id: z.string(),
  }),
} as const satisfies Record<string, z.ZodType>;

const webhookEndpoint = z.object({
  id: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  isEnabled: z.boolean(),
  disabledReason: z.enum(["gone", "failing"]).nullable().describe("The reason why the gateway disabled the endpoint."),
  failingSince: nullableText.describe("Since when all attempts have failed."),
  createdAt: z.string(),
});

const webhookDelivery = z.object({
  id: z.string().describe("The ID of the message: `webhook-id`."),
  event: z.string(),
  status: z.enum(["pending", "delivered", "failed"]),
  attempts: z.int().min(0),
  nextAttemptAt: nullableText,
  lastStatus: z.int().nullable(),
  lastError: nullableText,
  message: z.object({ type: z.string(), timestamp: z.string(), data: z.looseObject({}) }).describe("The body of the message."),
  createdAt: z.string(),
  finishedAt: nullableText,
});

export const WEBHOOK_ANSWERS = {
  LowBalance: z.object({
    threshold: z.number().nullable().describe("The balance in credits below which the alert is sent. Null: no alert."),
    since: nullableText.describe("Since when the balance has been below the threshold."),
  }),
  WebhookEndpoint: webhookEndpoint,
  WebhookEndpointList: z.object({ data: z.array(webhookEndpoint) }),
  WebhookEndpointWithSecret: z.object({
    ...webhookEndpoint.shape,
    secret: z.string().describe("The signing secret, `whsec_...`. It is shown only once."),
  }),
  DeletedWebhookEndpoint: z.object({ id: z.string(), deleted: z.literal(true) }),
  WebhookDelivery: webhookDelivery,
  WebhookDeliveryList: z.object({ data: z.array(webhookDelivery), nextCursor: nullableText, hasMore: z.boolean() }),
} as const satisfies Record<string, z.ZodType>;

const price = z.number().min(0).describe("The price in credits per unit. Prices that are not stated show their default.");
const prices = Object.fromEntries(PRICE_FIELDS.map((field) => [field, price]));
const perUserRpm = z
  .number()
  .nullable()
  .describe("The limit of requests per minute and account. 0.5 means one in two minutes. Null: no limit.");
const imagePricing = z.enum(["request", "tokens"]);
const api = z.enum(["chat_completions", "responses"]);

const common = {
  id: z.string(),
  modelId: z.string().describe("The ID used to call the model: `community/<owner>/<name>`."),
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
    .describe("The scheduled change of the model."),
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
  z.looseObject({ ...proxy, modality: z.literal("text"), api, url: z.string().describe("The exact URL of the endpoint.") }),
  z.looseObject({
    ...proxy,
    modality: z.enum(["image", "video", "transcription", "speech", "embedding"]),
    baseUrl: z.string().describe("The base URL of the media API, or the endpoint."),
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
    status: z.int().nullable().describe("The HTTP status of the upstream. Null when there was no response."),
    upstreamCode: z.string().nullable().describe("The gateway's code for the failure, such as model_not_found."),
    latencyMs: z.int().nullable(),
    message: z.string(),
  }),
  DeletedCommunityModel: z.object({ id: z.string() }),
  FallbackCandidateList: z.object({
    data: z.array(
      z.looseObject({
        modelId: z.string().describe("The ID to use in `fallbacks`."),
        title: z.string(),
        description: z.string().nullable(),
        isOwn: z.boolean(),
        ...prices,
      }),
    ),
  }),
} as const satisfies Record<string, z.ZodType>;
