/** The account's requests for generations, failures included (docs/spec/requests.md). */
import * as z from "zod";
import { toCreditsNumber } from "../../lib/money.js";
import type { Page } from "../../lib/pagination.js";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../../limits.js";
import { permissionOf } from "../../services/access/permissions.js";
import { REQUEST_FILTER_VALUES_MAX } from "../../services/request-log/limits.js";
import type { LoggedRequest } from "../../services/request-log/request-log.js";
import { REQUEST_OUTCOMES, requestFilterInput } from "../../services/request-log/request-log-filter.js";
import { queryInteger, queryList, queryTime } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { amount, credits, nullableText, pathId, time } from "../openapi/schemas.js";
import { hasBefore, NEEDS_BEFORE, positionBefore, queryBefore } from "../query.js";
import type { Route } from "../route.js";

const { shape } = requestFilterInput;

const requestsQuery = z
  .strictObject({
    outcomes: queryList(shape.outcomes.unwrap().unwrap())
      .optional()
      .describe(`A comma-separated list of ${REQUEST_OUTCOMES.join(", ")}. A request must match one of these, or of \`statuses\`.`),
    statuses: queryList(
      z
        .array(queryInteger(z.int().min(200).max(599)))
        .min(1)
        .max(REQUEST_FILTER_VALUES_MAX),
    )
      .optional()
      .describe("A comma-separated list of HTTP statuses, 200 to 599."),
    codes: queryList(shape.codes.unwrap().unwrap()).optional().describe("A comma-separated list of error codes."),
    api_key_ids: queryList(shape.apiKeyIds.unwrap().unwrap()).optional().describe("A comma-separated list of key IDs."),
    model_ids: queryList(shape.modelIds.unwrap().unwrap())
      .optional()
      .describe("A comma-separated list of canonical IDs of requested models, or of names that do not exist."),
    request_id: shape.requestId
      .unwrap()
      .unwrap()
      .optional()
      .describe("A request ID or generation ID, or its first 8 or more characters, of any time unless `from` is given."),
    from: queryTime().optional().describe("Requests at or after this ISO 8601 time. Defaults to 30 days before the end."),
    to: queryTime().optional().describe("Requests before this ISO 8601 time."),
    limit: queryInteger(z.int().min(1).max(PAGE_SIZE_MAX)).default(PAGE_SIZE_DEFAULT).describe("The maximum number of requests."),
    ...queryBefore("Requests", "request", "request"),
  })
  .refine(hasBefore, NEEDS_BEFORE);

const loggedRequest = z.looseObject({
  id: z.string(),
  timestamp: time,
  request_id: nullableText.describe("As in `X-Request-Id`. Null for requests that succeeded."),
  generation_id: nullableText.describe("As in `X-Generation-Id`. Null when the request was refused before there was one."),
  status: z.int(),
  code: nullableText,
  message: nullableText,
  model: nullableText,
  api_key_id: nullableText,
  api_key: nullableText,
  route: nullableText,
  operation: nullableText,
  response_time_ms: amount,
  left_out: amount.describe("Further failures with the same code at about that time that are not in the log."),
  is_charged: z.boolean(),
  cost_usd: credits,
  input_tokens: amount,
  output_tokens: amount,
});

const requestList = json(
  "Requests",
  z.looseObject({ requests: z.array(loggedRequest), count: amount, next_before: time.nullable(), next_before_id: nullableText }),
);

export function addRequestRoutes(route: Route, endpoint: Endpoint, { requestLog }: Pick<Services, "requestLog">): void {
  route("/requests", {
    GET: endpoint({
      id: "listRequests",
      tag: "Account",
      summary: "Lists requests for generations, newest first: charged, refused and failed ones (permission `usage`).",
      answer: requestList,
      requires: permissionOf("usage"),
      query: requestsQuery,
      handler: async (ctx, { query }) => {
        const { outcomes, statuses, codes, api_key_ids: apiKeyIds, model_ids: modelIds, request_id: requestId, from, to } = query;
        const filter = { outcomes, statuses, codes, apiKeyIds, modelIds, requestId, from, to };
        return toList(await requestLog.listOwn(ctx, { page: { first: query.limit, after: positionBefore(query) }, filter }));
      },
    }),
  });
  route("/requests/:id", {
    GET: endpoint({
      id: "getRequest",
      tag: "Account",
      summary: "Returns one request for a generation (permission `usage`).",
      answer: json("Request", loggedRequest),
      errors: ["404"],
      requires: permissionOf("usage"),
      params: z.object({ id: pathId("The ID of the request in the list, or of its generation.") }),
      handler: async (ctx, { params }) => toJson(await requestLog.getOwn(ctx, params.id)),
    }),
  });
}

function toList({ items, hasNextPage }: Page<LoggedRequest>) {
  const last = hasNextPage ? items.at(-1) : undefined;
  return { requests: items.map(toJson), count: items.length, next_before: last?.timestamp ?? null, next_before_id: last?.id ?? null };
}

function toJson(entry: LoggedRequest) {
  return {
    id: entry.id,
    timestamp: entry.timestamp,
    request_id: entry.requestId,
    generation_id: entry.generationId,
    status: entry.status,
    code: entry.code,
    message: entry.message,
    model: entry.model,
    api_key_id: entry.apiKeyId,
    api_key: entry.apiKeyName,
    route: entry.route,
    operation: entry.operation,
    response_time_ms: entry.milliseconds,
    left_out: entry.leftOut,
    is_charged: entry.isCharged,
    cost_usd: toCreditsNumber(entry.costNanocredits),
    input_tokens: entry.inputTokens,
    output_tokens: entry.outputTokens,
  };
}
