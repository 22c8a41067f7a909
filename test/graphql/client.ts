/** Clients of the GraphQL face: plain HTTP, the official graphql-ws client, and a reader of server-sent events over fetch. */
import { type Client, createClient } from "graphql-ws";
import { WebSocket } from "ws";

/** What a test reads freely: it says which fields it expects, and a wrong one is undefined. */
export interface Loose {
  readonly [field: string]: Loose;
  readonly [index: number]: Loose;
}

export interface AnsweredError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions: {
    readonly code: string;
    readonly param?: string;
    readonly details?: unknown;
    readonly retryAfterSeconds?: number;
    readonly requestId: string;
    readonly timestamp: string;
  };
}

export interface Answer {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly AnsweredError[];
}

export interface Document {
  readonly query: string;
  readonly variables?: Record<string, unknown>;
  readonly operationName?: string;
}

/** Where an app is reached, and with which key; null is nobody. */
export interface Target {
  readonly baseUrl: string;
  readonly wsUrl: string;
  readonly key: string | null;
}

export function post(target: Target, document: Document, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
  return fetch(`${target.baseUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", ...authorization(target), ...headers },
    body: JSON.stringify(document),
    ...(signal && { signal }),
  });
}

export async function execute(target: Target, query: string, variables: Record<string, unknown> = {}): Promise<Answer> {
  const response = await post(target, { query, variables });
  return (await response.json()) as Answer;
}

/** One field of an answer's data, as the test says it looks. */
export function field<Shape = Loose>(answer: Answer | null | undefined, name: string): Shape {
  const value = answer?.data?.[name];
  if (value === undefined || value === null) throw new Error(`No ${name} in ${JSON.stringify(answer)}`);
  return value as Shape;
}

/** The codes of an answer's errors, in order. */
export function codes({ errors = [] }: Answer): string[] {
  return errors.map(({ extensions }) => extensions.code);
}

export function authorization({ key }: Pick<Target, "key">): Record<string, string> {
  return key === null ? {} : { authorization: `Bearer ${key}` };
}

/** What a live operation answers, one at a time, and the way to leave it. */
export interface Live {
  /** The next result; null when the operation is complete. Errors that end an operation come as a result with `errors`. */
  next(): Promise<Answer | null>;
  /** Every result until the end. */
  rest(): Promise<Answer[]>;
  leave(): void;
}

export type Subscribe = (target: Target, document: Document) => Live;

/** A subscription over server-sent events, distinct connections mode. */
export function subscribeSse(target: Target, document: Document): Live {
  const leaving = new AbortController();
  return toLive(readEvents(post(target, document, { accept: "text/event-stream" }, leaving.signal)), () => leaving.abort());
}

async function* readEvents(responding: Promise<Response>): AsyncGenerator<Answer> {
  const response = await responding;
  if (!response.headers.get("content-type")?.startsWith("text/event-stream") || response.body === null) {
    throw new Error(`Not an event stream: ${response.status} ${await response.text()}`);
  }
  let text = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      if (lines.includes("event: complete")) return;
      const data = lines.find((line) => line.startsWith("data: "));
      if (data !== undefined) yield JSON.parse(data.slice("data: ".length)) as Answer;
    }
  }
  throw new Error("The event stream was cut.");
}

export function connect({ wsUrl, key }: Target): Client {
  return createClient({
    url: wsUrl,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    lazy: true,
    ...(key !== null && { connectionParams: { authorization: `Bearer ${key}` } }),
  });
}

/** A subscription over a WebSocket of its own. */
export function subscribeWebSocket(target: Target, document: Document): Live {
  const client = connect(target);
  return subscribeWith(client, document, () => void client.dispose());
}

export function subscribeWith(client: Client, document: Document, onEnd: () => void = () => undefined): Live {
  const results: (Answer | null)[] = [];
  let wake: (() => void) | undefined;
  const push = (result: Answer | null) => {
    results.push(result);
    if (result === null) onEnd();
    wake?.();
  };
  const leave = client.subscribe(document, {
    next: (result) => push(result as Answer),
    error: (error) => {
      push({ errors: Array.isArray(error) ? (error as AnsweredError[]) : [closed(error)] });
      push(null);
    },
    complete: () => push(null),
  });
  return toLive(
    (async function* () {
      for (;;) {
        const result = results.shift();
        if (result === null) return;
        if (result !== undefined) yield result;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    })(),
    leave,
  );
}

/** A socket that was closed under an operation, as an error whose code is the close code. */
function closed(reason: unknown): AnsweredError {
  const code = typeof reason === "object" && reason !== null && "code" in reason ? String(reason.code) : "unknown";
  return { message: "The socket was closed.", extensions: { code, requestId: "", timestamp: "" } };
}

function toLive(results: AsyncGenerator<Answer>, leave: () => void): Live {
  return {
    next: async () => {
      const { done, value } = await results.next();
      return done ? null : value;
    },
    rest: async () => {
      const all: Answer[] = [];
      for await (const result of results) all.push(result);
      return all;
    },
    leave,
  };
}

/** Both ways to subscribe, for tests that hold for either. */
export const TRANSPORTS: readonly (readonly [string, Subscribe])[] = [
  ["server-sent events", subscribeSse],
  ["a WebSocket", subscribeWebSocket],
];
