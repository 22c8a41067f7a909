/** OpenAI's chat-completions format, as lenient as upstreams are: only fields that we read are named. */

/** A validated chat-completions request; unknown fields are the client's and are passed on. */
export type ChatBody = Readonly<Record<string, unknown>>;

/** A `chat.completion` object. */
export interface ChatCompletion {
  readonly id?: string;
  readonly choices?: readonly ChatChoice[] | null;
  readonly usage?: unknown;
  readonly [field: string]: unknown;
}

export interface ChatChoice {
  readonly index?: number;
  readonly message?: ChatDelta | null;
  readonly finish_reason?: string | null;
  readonly [field: string]: unknown;
}

/** A message or a piece of one: everything that an upstream bills as output. */
export interface ChatDelta {
  readonly role?: string;
  readonly content?: unknown;
  readonly reasoning_content?: unknown;
  readonly reasoning?: unknown;
  readonly refusal?: unknown;
  readonly tool_calls?:
    | readonly {
        readonly function?: { readonly name?: string; readonly arguments?: string };
        readonly custom?: { readonly name?: string; readonly input?: string };
      }[]
    | null;
  readonly [field: string]: unknown;
}

export interface ChatChunkObject {
  readonly id?: string;
  readonly choices?: readonly ChatChunkChoice[] | null;
  readonly usage?: unknown;
  readonly [field: string]: unknown;
}

export interface ChatChunkChoice {
  readonly index?: number;
  readonly delta?: ChatDelta | null;
  readonly finish_reason?: string | null;
  readonly [field: string]: unknown;
}
