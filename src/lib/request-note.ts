/**
 * What is to be told of one request when it is over, in the access log and in the metrics. Whoever comes to know something of it writes
 * it down here, on the way: the faces who asks and which route it is, the services what was generated and what that cost.
 *
 * Nothing of it may be a secret or a prompt. So it holds ids that the gateway has made, names out of closed lists, and the pattern of a
 * route, whose actual path callers write into; the id of the request, which a caller may choose, is all that is theirs.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";

/** As much of a generation's receipt as is told. */
export interface NotedReceipt {
  readonly generationId: string;
  readonly model: string;
  readonly costNanocredits: bigint;
  readonly childCostNanocredits?: bigint | undefined;
  readonly gatewayMs: number;
}

export class RequestNote {
  /** Monotonic milliseconds. */
  readonly startedAt = performance.now();
  /** The pattern of the path that answered; null: none did. */
  route: string | null = null;
  requestId: string | null = null;
  /** Null: nobody's, or a session's. */
  apiKeyId: string | null = null;
  /** Of the error that was told the caller: the first one, where there were several. */
  code: string | null = null;
  /** What a GraphQL request asked for: the name of its operation, or else its kind. */
  operation: string | null = null;
  /** Of the first generation. */
  generationId: string | null = null;
  /** The canonical id of the model that was asked for. */
  model: string | null = null;
  /** How many generations were charged. */
  generations = 0;
  costNanocredits = 0n;
  /** Of agents: what was charged for all that they asked for. */
  childCostNanocredits = 0n;
  /** What the gateway itself took of the generations' time. */
  gatewayMs = 0;

  /** A generation is planned. One request may ask for several, of which an agent's own is the first. */
  began(generationId: string, model: string): void {
    this.generationId ??= generationId;
    this.model ??= model;
  }

  /** A generation was charged, be it nothing. */
  finished({ generationId, model, costNanocredits, childCostNanocredits = 0n, gatewayMs }: NotedReceipt): void {
    this.began(generationId, model);
    this.generations += 1;
    this.costNanocredits += costNanocredits;
    this.childCostNanocredits += childCostNanocredits;
    this.gatewayMs += gatewayMs;
  }

  refused(code: string): void {
    this.code ??= code;
  }
}

const NOTE = Symbol("request note");

type Noted = IncomingMessage & { [NOTE]?: RequestNote };

/** The note of a request: made when it is first asked for. */
export function noteOf(req: IncomingMessage): RequestNote {
  const noted: Noted = req;
  noted[NOTE] ??= new RequestNote();
  return noted[NOTE];
}

/** How a request ended. */
export interface RequestEnd {
  /** As HTTP names them; WEBSOCKET for what went over one. */
  readonly method: string;
  readonly status: number;
  /** The caller left, or was hung up on, before the answer was out. */
  readonly isLeft: boolean;
}

/** What proxies write down for a caller who left before there was an answer. */
const CLIENT_CLOSED_REQUEST = 499;

export interface RequestObserver {
  /** Any request, once: its answer is out, or its caller is gone. */
  requestOver(note: RequestNote, end: RequestEnd): void;
}

/** Tells the observers of each request of the server. Returns how many are under way. */
export function watchRequests(http: Server, observers: readonly RequestObserver[]): () => number {
  let underWay = 0;
  // First of all listeners, so that the time of the others counts.
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
