/**
 * Collects data of one request for the access log and the metrics. Each layer adds its part: the faces the caller and the route, the
 * services the generations and their cost.
 *
 * It must hold no secret and no prompt: only ids made by the gateway, names from closed lists, and the route's pattern, as clients write
 * into the path. The request id, which a client may choose, the name of a GraphQL operation and the requested model are the only client texts.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";

/** The logged part of a generation's receipt. */
export interface NotedReceipt {
  readonly generationId: string;
  readonly model: string;
  readonly costNanocredits: bigint;
  readonly childCostNanocredits?: bigint | undefined;
  readonly gatewayMs: number;
}

/** A limit of the request's generation. */
export interface NotedRate {
  readonly kind: "requests" | "tokens";
  readonly limit: number;
  readonly remaining: number;
  /** Until all of it is there again. */
  readonly resetMs: number;
}

/** The account, and the key unless it is a session. */
export interface NotedCaller {
  readonly accountId: string;
  readonly apiKeyId?: string;
  readonly apiKeyName?: string;
}

/** One of several generations of a request. They run one after the other. */
export interface NotedPart {
  /** Its response key in the operation. */
  readonly key: string;
  readonly startedAt: number;
  requestedModel: string | null;
  model: string | null;
  generationId: string | null;
  code: string | null;
  message: string | null;
}

export class RequestNote {
  /** Monotonic milliseconds. */
  readonly startedAt = performance.now();
  /** The pattern of the path; null: none matched. */
  route: string | null = null;
  requestId: string | null = null;
  /** Null: anonymous, or a session. */
  apiKeyId: string | null = null;
  /** Null: anonymous, or not yet authenticated. */
  caller: NotedCaller | null = null;
  /** Logged by configuration only. */
  clientAddress: string | null = null;
  /** It asks for a generation, whether or not one begins. */
  isGeneration = false;
  /** The first error code in the answer. */
  code: string | null = null;
  /** The message of that error, without texts of clients and upstreams. */
  message: string | null = null;
  /** Of a GraphQL request: the name of its operation, or else its kind. */
  operation: string | null = null;
  /** Of the first generation. */
  generationId: string | null = null;
  /** The canonical id of the requested model. */
  model: string | null = null;
  /** The model as the client named it, where it was read. Client text. */
  requestedModel: string | null = null;
  /** The generations of an operation with several fields, in their order; null: it has one. */
  parts: NotedPart[] | null = null;
  /** Limits of requests and tokens, the tightest of each kind, for headers. Null: none, or no generation. */
  rates: readonly NotedRate[] | null = null;
  generations = 0;
  costNanocredits = 0n;
  /** Charges of all generations that an agent made. */
  childCostNanocredits = 0n;
  /** The gateway's own share of the generations' time. */
  gatewayMs = 0;

  /** Call before the model is looked up, so that a refused name is known. */
  requested(model: string | null | undefined): void {
    this.requestedModel ??= model ?? null;
    const part = this.parts?.at(-1);
    if (part) part.requestedModel ??= model ?? null;
  }

  /** A generation of an operation with several fields begins. Does nothing for other operations. */
  beganPart(key: string): void {
    const startedAt = performance.now();
    this.parts?.push({ key, startedAt, requestedModel: null, model: null, generationId: null, code: null, message: null });
  }

  /** A generation is planned. A request may have several; an agent's own is the first. */
  began(generationId: string, model: string): void {
    this.generationId ??= generationId;
    this.model ??= model;
    const part = this.parts?.at(-1);
    if (!part) return;
    part.generationId ??= generationId;
    part.model ??= model;
  }

  /** A generation was charged, at a cost of 0 too. */
  finished({ generationId, model, costNanocredits, childCostNanocredits = 0n, gatewayMs }: NotedReceipt): void {
    this.began(generationId, model);
    this.generations += 1;
    this.costNanocredits += costNanocredits;
    this.childCostNanocredits += childCostNanocredits;
    this.gatewayMs += gatewayMs;
  }

  /** `summary`: the error's message, without texts of clients and upstreams. `key`: the response key of the field that failed. */
  refused(code: string, summary: string, key: unknown = null): void {
    const part = key === null ? undefined : this.parts?.find((one) => one.key === key);
    if (part && part.code === null) Object.assign(part, { code, message: summary });
    if (this.code !== null) return;
    this.code = code;
    this.message = summary;
  }
}

/** A generation that failed after its request was answered, as a job does. */
export interface LateFailure {
  readonly caller: NotedCaller;
  /** The request that started it. */
  readonly request: { readonly requestId: string; readonly route: string; readonly operation: string | null };
  readonly generationId: string;
  readonly model: string;
  readonly code: string;
  /** Without texts of clients and upstreams. */
  readonly message: string;
  readonly milliseconds: number;
}

export interface LateFailureObserver {
  failedLate(failure: LateFailure): void;
}

const NOTE = Symbol("request note");

type Noted = IncomingMessage & { [NOTE]?: RequestNote };

/** The note of a request, made on first use. */
export function noteOf(req: IncomingMessage): RequestNote {
  const noted: Noted = req;
  noted[NOTE] ??= new RequestNote();
  return noted[NOTE];
}

export interface RequestEnd {
  /** HTTP's method, or WEBSOCKET for an operation over a WebSocket. */
  readonly method: string;
  readonly status: number;
  /** The client disconnected, or was disconnected, before the end of the answer. */
  readonly isLeft: boolean;
}

/** The status that proxies log for a client that disconnected before the answer. */
const CLIENT_CLOSED_REQUEST = 499;

export interface RequestObserver {
  /** Called once per request, after its answer or when its client is gone. */
  requestOver(note: RequestNote, end: RequestEnd): void;
}

/** Calls the observers for each request of the server. Returns the number of requests under way. */
export function watchRequests(http: Server, observers: readonly RequestObserver[]): () => number {
  let underWay = 0;
  // The first listener, so that the time of the others counts.
  http.prependListener("request", (req: IncomingMessage, res: ServerResponse) => {
    const note = noteOf(req);
    underWay += 1;
    res.on("close", () => {
      underWay -= 1;
      const status = res.headersSent ? res.statusCode : CLIENT_CLOSED_REQUEST;
      const end = { method: req.method ?? "", status, isLeft: !res.writableFinished };
      for (const observer of observers) observer.requestOver(note, end);
    });
  });
  return () => underWay;
}
