/** The description of a REST operation, and the tags that group operations. */
import type { AnswerName } from "./answers.js";

export const TAGS = {
  Text: "Chat completions, responses and plain text.",
  Images: "Image generation and editing.",
  Video: "Video generation.",
  Audio: "Speech, music and transcriptions.",
  Embeddings: "Embeddings of text.",
  Moderation: "Moderation of text and images.",
  Models: "The model catalog. Needs no credentials.",
  Account: "Profile, balance and usage. A key needs the permission named in each operation.",
  Keys: "API keys. Needs a secret key with the permission `keys`, except for the calling key's own data.",
  Authorization: "Authorization of apps: keys that a user grants and pays for.",
  Media: "Files.",
  Webhooks: "Webhook endpoints that receive events of the account. Needs a secret key with the permission `keys`.",
  "Connected apps": "Connections to external apps that a person has approved. Needs a secret key with the permission `keys`.",
  Agents: "Prompt agents and code agents: registered models that the gateway itself runs.",
  "Community models": "Models and agents that the account has registered. Needs a secret key with the permission `keys`.",
  Service: "Health, metrics and API documents.",
} as const;
export type Tag = keyof typeof TAGS;

export interface Operation {
  /** The function name in a generated client. */
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** The schema of the JSON answer. */
  readonly answer?: AnswerName;
  /** Answers 204. */
  readonly hasNoContent?: boolean;
  /** Opens a WebSocket: 101, or 426 for a request without an upgrade. */
  readonly isUpgrade?: boolean;
  /** Error statuses that other routes of the same kind do not have. */
  readonly errors?: readonly string[];
  /** The redirect status, below 400. */
  readonly redirect?: { readonly status: "302" | "303"; readonly why: string };
  readonly contentTypes?: readonly string[];
  /** Pages and protocols that API clients do not call. */
  readonly isHidden?: boolean;
}
