/** What a route promises: parsed, typed and printed from one declaration at the route. */
import type * as z from "zod";
import type { FormOptions } from "../../http/uploads.js";
import type { Answer } from "./answer.js";

/** The groups of operations. */
export const TAGS = {
  Text: "Chat completions, messages and plain text.",
  Responses: "OpenAI's Responses, those that are stored, and conversations.",
  Images: "Image generation and editing.",
  Video: "Video generation.",
  Audio: "Speech, music and transcriptions.",
  Embeddings: "Embeddings of text, and reranking of documents.",
  Moderation: "Moderation of text and images.",
  Models: "The model catalog. Needs no credentials.",
  Account: "Profile, balance and usage. A key needs the permission named in each operation.",
  Runs: "Envelopes of credits and time for a series of calls, each with a key of its own.",
  Keys: "API keys. Needs a secret key with the permission `keys`, except for the calling key's own data.",
  Authorization: "Authorization of apps: keys that a user grants and pays for.",
  Media: "Files.",
  Webhooks: "Webhook endpoints that receive events of the account. Needs a secret key with the permission `keys`.",
  Alerts: "Raised alerts (unusual spend, budgets, unused keys and the like), and their rules.",
  "Connected apps": "Connections to external apps that a person has approved. Needs a secret key with the permission `keys`.",
  Agents: "Prompt agents and code agents: registered models that the gateway itself runs.",
  "Community models": "Models and agents that the account has registered. Needs a secret key with the permission `keys`.",
  Operators: "Reports for operators of the gateway. A secret key needs the permission `keys`.",
  Service: "Health, metrics and API documents.",
} as const;
export type Tag = keyof typeof TAGS;

/** The description of an operation. */
export interface Operation<A extends Answer = Answer> {
  /** The function name in a generated client. */
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  readonly answer: A;
  /** Error statuses that other routes of the same kind do not have. */
  readonly errors?: readonly string[];
  readonly example?: Example;
}

/** Not in the contract: pages, protocols of their own, and the HEAD twin of a GET. */
export interface Unlisted {
  readonly id: null;
  readonly answer?: undefined;
  readonly example?: undefined;
}

/** `never` is the answer of an unlisted route. */
export type Described<A extends Answer> = Operation<A> | Unlisted;

/**
 * A complete request, which succeeds on a new gateway with the owner's key and its sandbox models. "Try it out" at /docs shows it, and
 * `test/contract/openapi.test.ts` sends it. IDs of keys or webhooks must be filled in. URLs that are fetched use example.com, which exists.
 */
export interface Example {
  /** JSON, or fields of a urlencoded form. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** Text fields of a multipart form. Files must be selected by hand. */
  readonly form?: Readonly<Record<string, unknown>>;
  /** Values by parameter name. */
  readonly parameters?: Readonly<Record<string, string | number>>;
}

export interface ParamsSchema<Params> extends z.ZodType<Params> {
  readonly shape: Readonly<Record<string, z.ZodType>>;
}

/** What a route takes. */
export interface Input {
  /** True: anonymous callers are admitted. */
  readonly isPublic?: boolean;
  /** False: it reads no key, and so refuses none. */
  readonly readsKey?: false;
  readonly isForAgents?: boolean;
  readonly isGeneration?: boolean;
  /** Its handler reads an `Idempotency-Key`; implied by `isGeneration`. */
  readonly takesIdempotencyKey?: true;
  /** Accepts `max_cost`. Implied by `isGeneration`. */
  readonly isBounded?: boolean;
  /** Takes presets, and `models`. */
  readonly presetFormat?: string;
  /** Takes `models`, the caller's own fallbacks. */
  readonly takesModels?: true;
  readonly params?: ParamsSchema<unknown>;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  readonly form?: FormOptions<unknown>;
  readonly reads?: { readonly body: z.ZodType; readonly form: FormOptions<unknown>; readonly isFile: true };
  /** Answers with HTML pages, also for errors, and parses its own forms. */
  readonly isPage?: true;
  /** Also accepts its body as a form, unless `isJsonOnly`, and answers errors in the OAuth format. */
  readonly isOAuth?: true;
  readonly isJsonOnly?: true;
}

/** Every handler has one. */
export type Contract = Input & (Operation | Unlisted);

/** Whether the cost of its generations can be capped. */
export function isBounded({
  isGeneration = false,
  isBounded: isStated = isGeneration,
}: Pick<Input, "isGeneration" | "isBounded">): boolean {
  return isStated;
}
