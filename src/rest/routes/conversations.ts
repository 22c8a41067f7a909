/** /v1/conversations: OpenAI's conversations (docs/spec/chat.md#conversations). */
import * as z from "zod";
import { addItemsInput, createConversationInput, updateConversationInput } from "../../services/generation/stored/conversations.js";
import { itemsQuery } from "../../services/generation/stored/stored-responses.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { pathId, seconds } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { itemList } from "./stored-responses.js";

const CONVERSATIONS_PATH = "/v1/conversations";

const conversation = json(
  "Conversation",
  z.object({
    id: z.string(),
    object: z.literal("conversation"),
    created_at: seconds,
    metadata: z.record(z.string(), z.string()),
  }),
);
const conversationItem = json("ConversationItem", z.looseObject({ id: z.string(), type: z.string() }));

const byConversation = z.object({ conversation: pathId("The ID of a conversation.") });
const byItem = z.object({ conversation: pathId("The ID of a conversation."), item: pathId("The ID of an item of the conversation.") });

const ITEMS = [{ type: "message", role: "user", content: "Hello!" }];

export function addConversationRoutes(route: Route, endpoint: Endpoint, { conversations }: Pick<Services, "conversations">): void {
  route(CONVERSATIONS_PATH, {
    POST: endpoint({
      id: "createConversation",
      tag: "Responses",
      summary: "Creates a conversation, which responses continue and extend.",
      description: "Needs a gateway that stores responses (`RESPONSES_STORED_DAYS`). It is deleted as long after its creation.",
      answer: conversation,
      example: { body: { items: ITEMS, metadata: { topic: "mills" } } },
      isForAgents: true,
      body: createConversationInput,
      handler: (ctx, { body }) => conversations.create(ctx, body),
    }),
  });
  route(`${CONVERSATIONS_PATH}/:conversation`, {
    GET: endpoint({
      id: "retrieveConversation",
      tag: "Responses",
      summary: "Returns a conversation.",
      answer: conversation,
      isForAgents: true,
      params: byConversation,
      handler: (ctx, { params }) => conversations.get(ctx, params.conversation),
    }),
    POST: endpoint({
      id: "updateConversation",
      tag: "Responses",
      summary: "Replaces the metadata of a conversation.",
      answer: conversation,
      example: { body: { metadata: { topic: "rivers" } } },
      isForAgents: true,
      params: byConversation,
      body: updateConversationInput,
      handler: (ctx, { params, body }) => conversations.update(ctx, params.conversation, body),
    }),
    DELETE: endpoint({
      id: "deleteConversation",
      tag: "Responses",
      summary: "Deletes a conversation with its items. Stored responses stay.",
      answer: json(
        "DeletedConversation",
        z.object({ id: z.string(), object: z.literal("conversation.deleted"), deleted: z.literal(true) }),
      ),
      isForAgents: true,
      params: byConversation,
      handler: async (ctx, { params }) => {
        const { id } = await conversations.delete(ctx, params.conversation);
        return { id, object: "conversation.deleted" as const, deleted: true as const };
      },
    }),
  });
  route(`${CONVERSATIONS_PATH}/:conversation/items`, {
    GET: endpoint({
      id: "listConversationItems",
      tag: "Responses",
      summary: "Lists the items of a conversation.",
      answer: itemList,
      isForAgents: true,
      params: byConversation,
      query: itemsQuery,
      handler: (ctx, { params, query }) => conversations.listItems(ctx, params.conversation, query),
    }),
    POST: endpoint({
      id: "createConversationItems",
      tag: "Responses",
      summary: "Adds items to a conversation.",
      answer: itemList,
      example: { body: { items: ITEMS } },
      isForAgents: true,
      params: byConversation,
      body: addItemsInput,
      handler: (ctx, { params, body }) => conversations.addItems(ctx, params.conversation, body),
    }),
  });
  route(`${CONVERSATIONS_PATH}/:conversation/items/:item`, {
    GET: endpoint({
      id: "retrieveConversationItem",
      tag: "Responses",
      summary: "Returns an item of a conversation.",
      answer: conversationItem,
      isForAgents: true,
      params: byItem,
      handler: (ctx, { params }) => conversations.getItem(ctx, params.conversation, params.item),
    }),
    DELETE: endpoint({
      id: "deleteConversationItem",
      tag: "Responses",
      summary: "Deletes an item of a conversation, and returns the conversation.",
      answer: conversation,
      isForAgents: true,
      params: byItem,
      handler: (ctx, { params }) => conversations.deleteItem(ctx, params.conversation, params.item),
    }),
  });
}
