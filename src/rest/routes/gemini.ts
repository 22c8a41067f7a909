/** Gemini's format (docs/spec/gemini.md): generateContent, its token count and embeddings, below /v1beta and below /v1. */
import * as z from "zod";
import type { AppError } from "../../errors.js";
import { toGeminiError } from "../../formats/gemini/errors.js";
import { toGeminiModel, toGeminiModelPage, toModelId } from "../../formats/gemini/models.js";
import { batchEmbedRequest, embedContentRequest } from "../../formats/gemini/request.js";
import { ArrayWriting, EventWriting } from "../../formats/gemini/writing.js";
import { toErrorEnvelope } from "../../http/errors.js";
import type { Exchange } from "../../http/exchange.js";
import { countTokensInput, generateContentInput } from "../../services/generation/chat/generate-content.js";
import { queryInteger } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { EVENT_STREAM, json, jsonOr } from "../openapi/answer.js";
import { amount, MILL, pathId } from "../openapi/schemas.js";
import { type Route, type RouteHandler, withContract } from "../route.js";
import { sendAnswerStream } from "../streaming.js";

/** Clients of Gemini's API, as OpenAI's list has the same path. */
export const isGeminiClient = ({ req }: Exchange) => req.headers["x-goog-api-key"] !== undefined;

/** Google's bound and default of a page. */
export const GEMINI_PAGE_MODELS_MAX = 1_000;
export const GEMINI_PAGE_MODELS = 50;
/** Unspecified: the id of the last model of a page. */
const TOKEN_CHARS_MAX = 253;

const params = z.object({ model: pathId("The model's ID or alias. Slashes may be raw or encoded.") });

const usageMetadata = z.looseObject({
  promptTokenCount: amount,
  candidatesTokenCount: amount,
  totalTokenCount: amount,
});
const answer = json(
  "GenerateContentAnswer",
  z.looseObject({
    candidates: z.array(
      z.looseObject({
        content: z.looseObject({ parts: z.array(z.looseObject({})), role: z.literal("model") }),
        finishReason: z.enum(["STOP", "MAX_TOKENS", "SAFETY"]).optional(),
        index: z.int(),
      }),
    ),
    usageMetadata: usageMetadata.optional(),
    modelVersion: z.string(),
    responseId: z.string(),
  }),
);
const tokenCount = json("GeminiTokenCount", z.object({ totalTokens: amount }));
const embedding = z.object({ values: z.array(z.number()) });
const embeddingUsage = z.looseObject({ promptTokenCount: amount, cost: z.number() });
const embedded = json("EmbeddedContent", z.looseObject({ embedding, usageMetadata: embeddingUsage }));
const embeddedBatch = json("EmbeddedContents", z.looseObject({ embeddings: z.array(embedding), usageMetadata: embeddingUsage }));
const model = json(
  "GeminiModel",
  z.looseObject({ name: z.string(), version: z.string(), displayName: z.string(), supportedGenerationMethods: z.array(z.string()) }),
);
const modelPage = json("GeminiModels", z.looseObject({ models: z.array(model.schema), nextPageToken: z.string().optional() }));

/** The gateway's envelope with the error of Google's, and without `status`, which Google's client for Python would take for its name. */
function toGeminiErrorBody(error: AppError, requestId: string): object {
  const { status, success, error: reported } = toErrorEnvelope(error, requestId);
  return { success, error: toGeminiError(reported, status, error.retryAfterSeconds) };
}

const HELLO = [{ role: "user", parts: [{ text: "Hello!" }] }];
const CONTENT = { parts: [{ text: MILL }] };
const TEXT_EXAMPLE = { parameters: { model: "sandbox/text" }, body: { contents: HELLO } };

type GeminiServices = Pick<Services, "generateContent" | "catalog">;

export function addGeminiRoutes(route: Route, endpoint: Endpoint, services: GeminiServices): void {
  addOperations(route, endpoint, services);
  addModels(route, endpoint, services);
}

/** Google's clients use both prefixes; the contract lists one. */
function addTwice(route: Route, operation: string, handler: RouteHandler): void {
  route(`/v1beta/models/*model\\:${operation}`, { POST: handler });
  const { answer: _answer, example: _example, ...contract } = handler.contract;
  route(`/v1/models/*model\\:${operation}`, {
    POST: withContract((exchange) => handler(exchange), { ...contract, id: null }, handler.quote),
  });
}

function addOperations(route: Route, endpoint: Endpoint, { generateContent }: GeminiServices): void {
  const common = { isForAgents: true, toErrorBody: toGeminiErrorBody, params, modelInPath: toModelId } as const;

  addTwice(
    route,
    "generateContent",
    endpoint({
      id: "generateContent",
      tag: "Text",
      summary: "Generates content in Gemini's format, with any text model.",
      description:
        "The key may be sent as `x-goog-api-key`. Fields may be in camelCase or snake_case. Unknown fields are left out and listed in `X-Warnings`. Tools that Google runs are rejected with 400.",
      answer,
      example: TEXT_EXAMPLE,
      ...common,
      isGeneration: true,
      body: generateContentInput,
      presetFormat: "gemini",
      handler: async (ctx, { params: { model: name }, body, exchange }) => {
        const { answer: whole, receipt } = await generateContent.create(ctx, name, body);
        exchange.setHeaders(receiptHeaders(receipt));
        return whole;
      },
    }),
  );
  addTwice(
    route,
    "streamGenerateContent",
    endpoint({
      id: "streamGenerateContent",
      tag: "Text",
      summary: "Streams generated content in Gemini's format.",
      description:
        "With `alt=sse`, the answers are server-sent events, else the items of one JSON array. The last has the usage, its cost and the `receipt`.",
      answer: jsonOr(json("GenerateContentAnswers", z.array(answer.schema)), EVENT_STREAM),
      example: TEXT_EXAMPLE,
      ...common,
      isGeneration: true,
      query: z.object({ alt: z.enum(["sse", "json"]).optional().describe("`sse`: server-sent events. Default: a JSON array.") }),
      body: generateContentInput,
      presetFormat: "gemini",
      handler: (ctx, { params: { model: name }, query: { alt }, body, exchange }) => {
        const writing = alt === "sse" ? new EventWriting() : new ArrayWriting();
        const stream = generateContent.stream(ctx, name, body, (answers) => writing.write(answers));
        return sendAnswerStream(exchange, ctx, stream, writing);
      },
    }),
  );
  addTwice(
    route,
    "countTokens",
    endpoint({
      id: "countContentTokens",
      tag: "Text",
      summary: "Estimates the input tokens of a generateContent request, without a charge.",
      answer: tokenCount,
      example: TEXT_EXAMPLE,
      ...common,
      body: countTokensInput,
      presetFormat: "gemini",
      handler: async (ctx, { params: { model: name }, body }) => ({ totalTokens: await generateContent.countTokens(ctx, name, body) }),
    }),
  );
  addTwice(
    route,
    "embedContent",
    endpoint({
      id: "embedContent",
      tag: "Embeddings",
      summary: "Creates the embedding of a content, in Gemini's format.",
      answer: embedded,
      example: { parameters: { model: "sandbox/embedding" }, body: { content: CONTENT } },
      ...common,
      isGeneration: true,
      body: embedContentRequest,
      takesModels: true,
      handler: async (ctx, { params: { model: name }, body, exchange }) => {
        const { values, tokens, cost, receipt } = await generateContent.embed(ctx, name, [body]);
        exchange.setHeaders(receiptHeaders(receipt));
        return { embedding: { values: values[0] ?? [] }, usageMetadata: { promptTokenCount: tokens, cost } };
      },
    }),
  );
  addTwice(
    route,
    "batchEmbedContents",
    endpoint({
      id: "batchEmbedContents",
      tag: "Embeddings",
      summary: "Creates the embeddings of several contents, in Gemini's format.",
      answer: embeddedBatch,
      example: { parameters: { model: "sandbox/embedding" }, body: { requests: [{ content: CONTENT }, { content: CONTENT }] } },
      ...common,
      isGeneration: true,
      body: batchEmbedRequest,
      takesModels: true,
      handler: async (ctx, { params: { model: name }, body, exchange }) => {
        const { values, tokens, cost, receipt } = await generateContent.embed(ctx, name, body.requests, body);
        exchange.setHeaders(receiptHeaders(receipt));
        return { embeddings: values.map((vector) => ({ values: vector })), usageMetadata: { promptTokenCount: tokens, cost } };
      },
    }),
  );
}

function addModels(route: Route, endpoint: Endpoint, { catalog }: GeminiServices): void {
  route("/v1beta/models", {
    GET: endpoint({
      id: "listGeminiModels",
      tag: "Models",
      summary: "Lists text and embedding models, in Gemini's format.",
      description: "GET /v1/models answers the same to a request with the header `x-goog-api-key`.",
      answer: modelPage,
      isForAgents: true,
      isPublic: true,
      toErrorBody: toGeminiErrorBody,
      query: z.object({
        pageSize: queryInteger(z.int().min(1).max(GEMINI_PAGE_MODELS_MAX)).optional().describe("Models of one page. Default: 50."),
        pageToken: z.string().max(TOKEN_CHARS_MAX).optional().describe("The `nextPageToken` of the page before."),
      }),
      handler: async (ctx, { query: { pageSize = GEMINI_PAGE_MODELS, pageToken } }) =>
        toGeminiModelPage(await catalog.list(ctx, { modalities: ["text", "embedding"] }), pageSize, pageToken),
    }),
  });
  route("/v1beta/models/*id", {
    GET: endpoint({
      id: "getGeminiModel",
      tag: "Models",
      summary: "Returns a model in Gemini's format, by ID or alias.",
      answer: model,
      example: { parameters: { id: "sandbox/text" } },
      isForAgents: true,
      isPublic: true,
      toErrorBody: toGeminiErrorBody,
      params: z.object({ id: pathId("The ID. Slashes may be raw or encoded.") }),
      handler: async (ctx, { params: { id } }) => toGeminiModel(await catalog.get(ctx, toModelId(id))),
    }),
  });
}
