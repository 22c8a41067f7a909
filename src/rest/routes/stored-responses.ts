/** /v1/responses/{response}: stored responses (docs/spec/chat.md#stored-responses). */
import * as z from "zod";
import { itemsQuery } from "../../services/generation/stored/stored-responses.js";
import { queryFlag, queryInteger } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { EVENT_STREAM, json, jsonOr } from "../openapi/answer.js";
import { nullableText, pathId } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendFollowedResponse } from "../streaming.js";
import { modelResponse, RESPONSES_PATH } from "./responses.js";

/** A page of items. */
export const itemList = json(
  "ResponseItemList",
  z.object({
    object: z.literal("list"),
    data: z.array(z.looseObject({ id: z.string(), type: z.string() })),
    first_id: nullableText,
    last_id: nullableText,
    has_more: z.boolean(),
  }),
);

const byResponse = z.object({ response: pathId("The ID of a stored response.") });

const retrieveQuery = z.looseObject({
  stream: queryFlag.optional().describe("Streams the events of a background response that was created with `stream: true`."),
  starting_after: queryInteger(z.int().min(0)).optional().describe("With `stream`: the `sequence_number` of the last event that was read."),
});

/** Add them behind the routes with fixed paths. */
export function addStoredResponseRoutes(route: Route, endpoint: Endpoint, { storedResponses }: Pick<Services, "storedResponses">): void {
  route(`${RESPONSES_PATH}/:response`, {
    GET: endpoint({
      id: "retrieveResponse",
      tag: "Responses",
      summary: "Returns a stored response.",
      description: "A response in the background is `queued` or `in_progress` until it is finished.",
      answer: jsonOr(modelResponse, EVENT_STREAM),
      isForAgents: true,
      params: byResponse,
      query: retrieveQuery,
      handler: async (ctx, { params, query, exchange }) => {
        if (!query.stream) return storedResponses.get(ctx, params.response);
        const events = await storedResponses.follow(ctx, params.response, query.starting_after ?? -1);
        return sendFollowedResponse(exchange, ctx, events);
      },
    }),
    DELETE: endpoint({
      id: "deleteResponse",
      tag: "Responses",
      summary: "Deletes a stored response. One that runs in the background is cancelled.",
      answer: json("DeletedResponse", z.object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) })),
      isForAgents: true,
      params: byResponse,
      handler: async (ctx, { params }) => {
        const { id } = await storedResponses.delete(ctx, params.response);
        return { id, object: "response" as const, deleted: true as const };
      },
    }),
  });
  route(`${RESPONSES_PATH}/:response/cancel`, {
    POST: endpoint({
      id: "cancelResponse",
      tag: "Responses",
      summary: "Cancels a response in the background. The part generated until then is charged.",
      answer: modelResponse,
      isForAgents: true,
      params: byResponse,
      handler: (ctx, { params }) => storedResponses.cancel(ctx, params.response),
    }),
  });
  route(`${RESPONSES_PATH}/:response/input_items`, {
    GET: endpoint({
      id: "listResponseInputItems",
      tag: "Responses",
      summary: "Lists the input items of a stored response, with those of the responses that it continues.",
      answer: itemList,
      isForAgents: true,
      params: byResponse,
      query: itemsQuery,
      handler: (ctx, { params, query }) => storedResponses.inputItems(ctx, params.response, query),
    }),
  });
}
