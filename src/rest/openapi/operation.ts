/** What is said of an operation of the REST face, and the groups that they are shown in. */
import type { AnswerName } from "./answers.js";

export const TAGS = {
  Text: "Chat completions, responses and plain text.",
  Images: "Pictures and their editing.",
  Video: "Moving pictures.",
  Audio: "Speech, music and transcriptions.",
  Embeddings: "Vectors of texts.",
  Moderation: "Judgements of texts.",
  Models: "The catalog. Open to all.",
  Account: "Profile, balance and usage. A key needs the permission that the operation names.",
  Keys: "API keys. A secret key with the permission `keys` is needed, except for the key's own data.",
  Authorization: "How an app gets a key that its user pays for.",
  Media: "Files.",
  Webhooks: "Addresses that are told what happens to the account. A secret key with the permission `keys` is needed.",
  "Connected apps": "Accounts elsewhere that a person has opened to the gateway. A secret key with the permission `keys` is needed.",
  Agents: "Prompt agents and code agents: registered models that the gateway answers for itself.",
  "Community models": "Models that the account has registered, agents among them. A secret key with the permission `keys` is needed.",
  Service: "Whether it works.",
} as const;
export type Tag = keyof typeof TAGS;

export interface Operation {
  /** The name of the function in a generated client. */
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** Of the JSON answer. */
  readonly answer?: AnswerName;
  /** Its answer is 204. */
  readonly hasNoContent?: boolean;
  /** It becomes a WebSocket: its answer is 101, and 426 to a request without an upgrade. */
  readonly isUpgrade?: boolean;
  /** Error statuses that its kind of route does not have anyway. */
  readonly errors?: readonly string[];
  /** A status below 400 that sends whoever asks on. */
  readonly redirect?: { readonly status: "302" | "303"; readonly why: string };
  /** What else may be answered. */
  readonly contentTypes?: readonly string[];
  /** Pages and protocols that a client of the API does not call. */
  readonly isHidden?: boolean;
}
