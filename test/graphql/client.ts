/** Clients of the GraphQL face: plain HTTP, the official graphql-ws client, and a reader of server-sent events over fetch. */
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { print } from "graphql";
import { type Client, createClient } from "graphql-ws";
import { WebSocket } from "ws";

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

/** The data of an operation without generated types. */
type Fields = Readonly<Record<string, unknown>>;

export interface Answer<Data = Fields> {
  readonly data?: Data | null;
  readonly errors?: readonly AnsweredError[];
  readonly extensions?: {
    readonly cost?: { readonly requested: number; readonly maximum: number };
    readonly idempotentReplay?: boolean;
  };
}

/** What a document is given: nothing where all of its variables have defaults. */
export type Given<Variables> = Record<never, never> extends Variables ? readonly [variables?: Variables] : readonly [variables: Variables];

/** A document as text, such as one that is wrong on purpose. */
export interface Document {
  readonly query: string;
  readonly variables?: Record<string, unknown>;
  readonly operationName?: string;
}

/** The address of an app over HTTP, its key (null for an anonymous caller), and further headers. */
export interface HttpTarget {
  readonly baseUrl: string;
  readonly key: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Target extends HttpTarget {
  readonly wsUrl: string;
}

export function post(
  target: HttpTarget,
  document: Document,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  const { contentType, body } = toBody(document);
  return fetch(`${target.baseUrl}/graphql`, {
    method: "POST",
    headers: { ...contentType, ...authorization(target), ...target.headers, ...headers },
    body,
    ...(signal && { signal }),
  });
}

/** JSON; or, where there are files among the variables, the form of the GraphQL multipart request specification. */
function toBody(document: Document): { readonly contentType: Readonly<Record<string, string>>; readonly body: string | FormData } {
  const files = filesIn(document.variables ?? {}, "variables");
  if (files.length === 0) return { contentType: { "content-type": "application/json" }, body: JSON.stringify(document) };
  const body = new FormData();
  body.set(
    "operations",
    JSON.stringify(document, (_name, value) => (value instanceof Blob ? null : value)),
  );
  body.set("map", JSON.stringify(Object.fromEntries(files.map(({ path }, index) => [index, [path]]))));
  files.forEach(({ file }, index) => void body.set(String(index), file, file instanceof File ? file.name : "file"));
  return { contentType: { "graphql-preflight": "1" }, body };
}

function filesIn(value: unknown, path: string): { readonly path: string; readonly file: Blob }[] {
  if (value instanceof Blob) return [{ path, file: value }];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => filesIn(part, `${path}.${name}`));
}

/** The answer to a document of test/operations; `ok` of it is the data. */
export async function execute<Data, Variables>(
  target: HttpTarget,
  document: TypedDocumentNode<Data, Variables>,
  ...[variables]: Given<Variables>
): Promise<Answer<Data>> {
  return send(target, { query: textOf(document), variables: { ...variables } });
}

/** The answer to a document that the schema does not allow, to variables of the wrong kind, or to a text that the test makes up. */
export function executeText(target: HttpTarget, document: Document): Promise<Answer> {
  return send(target, document);
}

async function send<Data>(target: HttpTarget, document: Document): Promise<Answer<Data>> {
  const response = await post(target, document);
  return (await response.json()) as Answer<Data>;
}

export function textOf<Data, Variables>(document: TypedDocumentNode<Data, Variables>): string {
  const text = TEXTS.get(document) ?? print(document);
  TEXTS.set(document, text);
  return text;
}
const TEXTS = new WeakMap<object, string>();

/** The data of an answer without errors, of which no field of the root is null. */
export function ok<Data extends object>(answer: Answer<Data> | null): Present<Data> {
  if (!answer?.data || answer.errors || Object.values(answer.data).includes(null)) {
    throw new Error(`Not what was asked for: ${JSON.stringify(answer)}`);
  }
  return answer.data as Present<Data>;
}
type Present<Data> = { readonly [Field in keyof Data]-?: NonNullable<Data[Field]> };

/** The codes of an answer's errors, in order. */
export function codes({ errors = [] }: Answer<unknown>): string[] {
  return errors.map(({ extensions }) => extensions.code);
}

export function authorization({ key }: Pick<Target, "key">): Record<string, string> {
  return key === null ? {} : { authorization: `Bearer ${key}` };
}

/** What a live operation answers, one at a time, and the way to leave it. */
export interface Live<Data = Fields> {
  /** The next result; null when the operation is complete. Errors that end an operation come as a result with `errors`. */
  next(): Promise<Answer<Data> | null>;
  /** Every result until the end. */
  rest(): Promise<Answer<Data>[]>;
  leave(): void;
}

/** Begins a document of test/operations, or a text that is wrong on purpose. */
export interface Subscribe {
  <Data, Variables>(target: Target, document: TypedDocumentNode<Data, Variables>, ...given: Given<Variables>): Live<Data>;
  (target: Target, document: Document): Live;
}

/** A subscription over server-sent events, distinct connections mode. */
export const subscribeSse: Subscribe = (target: Target, document: TypedDocumentNode | Document, variables?: Record<string, unknown>) => {
  const leaving = new AbortController();
  const responding = post(target, requestOf(document, variables), { accept: "text/event-stream" }, leaving.signal);
  return toLive(readEvents<never>(responding), () => leaving.abort());
};

function requestOf(document: TypedDocumentNode | Document, variables: Record<string, unknown> = {}): Document {
  return "query" in document ? document : { query: textOf(document), variables };
}

async function* readEvents<Data>(responding: Promise<Response>): AsyncGenerator<Answer<Data>> {
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
      if (data !== undefined) yield JSON.parse(data.slice("data: ".length)) as Answer<Data>;
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
export const subscribeWebSocket: Subscribe = (
  target: Target,
  document: TypedDocumentNode | Document,
  variables?: Record<string, unknown>,
) => {
  const client = connect(target);
  return follow<never>(client, requestOf(document, variables), () => void client.dispose());
};

/** An operation over a WebSocket that several share. */
export function subscribeWith<Data, Variables>(
  client: Client,
  document: TypedDocumentNode<Data, Variables>,
  ...given: Given<Variables>
): Live<Data>;
export function subscribeWith(client: Client, document: Document): Live;
export function subscribeWith(client: Client, document: TypedDocumentNode | Document, variables?: Record<string, unknown>) {
  return follow<never>(client, requestOf(document, variables), () => undefined);
}

function follow<Data>(client: Client, document: Document, onEnd: () => void): Live<Data> {
  const results: (Answer<Data> | null)[] = [];
  let wake: (() => void) | undefined;
  const push = (result: Answer<Data> | null) => {
    results.push(result);
    if (result === null) onEnd();
    wake?.();
  };
  const leave = client.subscribe(document, {
    next: (result) => push(result as Answer<Data>),
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

function toLive<Data>(results: AsyncGenerator<Answer<Data>>, leave: () => void): Live<Data> {
  return {
    next: async () => {
      const { done, value } = await results.next();
      return done ? null : value;
    },
    rest: async () => {
      const all: Answer<Data>[] = [];
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
