/** Chats in the formats of other vendors, and counts of their tokens. */
import type { RateLimits } from "../../access/rate-limits.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { Embeddings } from "../embeddings.js";
import type { ChatCompletions } from "./chat.js";
import { GenerateContent } from "./generate-content.js";
import { Messages } from "./messages.js";
import { Responses } from "./responses.js";
import { TokenCounts } from "./token-count.js";

/** `responses` is without storage. */
export function createChatFaces(chat: ChatCompletions, embeddings: Embeddings, catalog: Catalog, limits: RateLimits) {
  return {
    messages: new Messages(chat, catalog, limits),
    responses: new Responses(chat, catalog, limits),
    generateContent: new GenerateContent(chat, embeddings, catalog, limits),
    tokenCounts: new TokenCounts(catalog, limits),
  };
}
