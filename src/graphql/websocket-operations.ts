/** The operations of one WebSocket: checked, limited in number, each with a signal that ends it at once. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type ExecutionArgs, type ExecutionResult, GraphQLError, type GraphQLFormattedError, getOperationAST } from "graphql";
import type { SubscribePayload } from "graphql-ws";
import { AppError, isCredentialEnded, serviceUnavailable } from "../errors.js";
import { TURN_BYTES } from "../http/body.js";
import { authenticate, HttpRequestContext } from "../http/context.js";
import { statusOfNote } from "../http/errors.js";
import { RequestNote } from "../lib/request-note.js";
import { WEBSOCKET_OPERATIONS_MAX } from "../limits.js";
import { type Credential, sessionEnded } from "../services/access/revocation-watch.js";
import { type GraphQLContext, toGraphQLContext } from "./context.js";
import { textOf } from "./plugins/use-persisted-documents.js";
import { toPublicError, toPublicErrors } from "./public-errors.js";
import { type Face, GRAPHQL_PATH } from "./yoga.js";

type Result = ExecutionResult | AsyncIterable<ExecutionResult>;

export interface PreparedOperation extends ExecutionArgs {
  readonly run: () => Promise<Result>;
}

interface Operation {
  readonly id: string;
  readonly leaving: AbortController;
  readonly note: RequestNote;
  /** Whether it is a subscription that does not end by itself. */
  isLive: boolean;
}

/** A `complete` message is short; longer messages are not parsed for it. */
const COMPLETE_CHARS_MAX = 256;

export class SocketOperations {
  readonly #running = new Map<SubscribePayload, Operation>();
  #credential: Credential = { key: null, sessionToken: null };
  #onStopped: (() => void) | null = null;
  /** The length of the current message: graphql-ws prepares its operation before the next message. */
  #messageChars = 0;

  constructor(
    private readonly face: Face,
    /** The upgrade request, whose headers apply to each operation. */
    private readonly upgrade: IncomingMessage,
    private readonly clientAddress: string,
    private readonly onKeyRefused: (error: AppError) => void,
  ) {}

  authenticateAs(credential: Credential): void {
    this.#credential = credential;
  }

  /** The operation for graphql-ws to execute, or the errors to answer. */
  async prepare(id: string, payload: SubscribePayload): Promise<PreparedOperation | readonly GraphQLError[]> {
    const requestId = randomUUID();
    const leaving = new AbortController();
    const { services } = this.face;
    const note = new RequestNote();
    note.route = GRAPHQL_PATH;
    note.requestId = requestId;
    const source = { req: this.upgrade, requestId, note, log: this.face.log.child({ requestId }), signal: leaving.signal };
    const operation: Operation = { id, leaving, note, isLive: false };
    const hasLargeInput = this.#messageChars > TURN_BYTES;
    try {
      if (this.#onStopped) throw serviceUnavailable("The gateway is stopping.");
      if (this.#running.size >= WEBSOCKET_OPERATIONS_MAX) throw tooManyOperations();
      this.#running.set(payload, operation);
      const caller = await authenticate(services.access, this.#credential, this.clientAddress);
      if (caller.kind === "anonymous" && this.#credential.sessionToken !== null) throw sessionEnded();
      const ctx = new HttpRequestContext(caller, source, this.clientAddress);
      ctx.hasLargeInput = hasLargeInput;
      // The message was parsed in this turn.
      if (hasLargeInput) await nextTurn();
      const openLive = () => {
        operation.isLive = true;
        this.reportIdle();
      };
      const more = { services, isSchemaOpen: this.face.isSchemaOpenTo(caller), browser: null, openLive };
      const prepared = await this.envelop(toGraphQLContext(ctx, more), payload);
      if (Array.isArray(prepared)) this.finish(payload);
      return prepared;
    } catch (error) {
      const reported = toPublicError(error, source);
      if (this.#running.get(payload) === operation) this.finish(payload);
      else this.reportEnd(operation);
      if (isCredentialEnded(error)) this.onKeyRefused(error);
      return [reported];
    }
  }

  /** Runs Yoga's own pipeline: parse, validate and execute with every plugin. */
  private async envelop(context: GraphQLContext, payload: SubscribePayload): Promise<PreparedOperation | GraphQLError[]> {
    const params = {
      query: await textOf(payload, context),
      operationName: payload.operationName ?? undefined,
      variables: payload.variables ?? undefined,
    };
    const enveloped = this.face.yoga.getEnveloped(Object.assign(context, { params }));
    const document = enveloped.parse(params.query);
    const refusals = enveloped.validate(enveloped.schema, document);
    if (refusals.length > 0) return toPublicErrors(refusals, context);
    const operation = getOperationAST(document, params.operationName);
    if (!operation) return [toPublicError(new GraphQLError("The document holds no such operation."), context)];
    const args: ExecutionArgs = {
      schema: enveloped.schema,
      document,
      operationName: params.operationName,
      variableValues: params.variables,
      contextValue: await enveloped.contextFactory(),
    };
    const run = operation.operation === "subscription" ? enveloped.subscribe : enveloped.execute;
    return { ...args, run: () => settle(() => run(args), context) };
  }

  /** Called when an operation ends, in any way. */
  finish(payload: SubscribePayload): void {
    const operation = this.#running.get(payload);
    if (operation) this.reportEnd(operation);
    this.#running.delete(payload);
    this.reportIdle();
  }

  /** Accepts no more operations and calls back when the running ones have ended, but for those that do not end by themselves. */
  stop(onStopped: () => void): void {
    this.#onStopped = onStopped;
    this.reportIdle();
  }

  private reportIdle(): void {
    if (!this.#onStopped) return;
    for (const { isLive } of this.#running.values()) if (!isLive) return;
    this.#onStopped();
  }

  /**
   * Reads a message before graphql-ws does. A `complete` aborts the signal of its operation at once: graphql-ws would end a
   * subscription, but let a query or mutation continue.
   */
  expect(text: string): void {
    this.#messageChars = text.length;
    const id = text.length <= COMPLETE_CHARS_MAX && text.includes('"complete"') ? completedId(text) : null;
    if (id === null) return;
    for (const operation of this.#running.values()) if (operation.id === id) operation.leaving.abort();
  }

  cancelAll(): void {
    for (const operation of this.#running.values()) {
      operation.leaving.abort();
      this.reportEnd(operation);
    }
    this.#running.clear();
  }

  private reportEnd({ note, leaving }: Operation): void {
    this.face.onOver(note, { method: "WEBSOCKET", status: statusOfNote(note), isLeft: leaving.signal.aborted });
  }
}

/** An error as it is sent, without its HTTP extensions. */
export function toMessageError(error: GraphQLError | GraphQLFormattedError): GraphQLFormattedError {
  const { extensions = {}, ...fields } = error instanceof GraphQLError ? error.toJSON() : error;
  const { http: _, ...rest } = extensions;
  return { ...fields, extensions: rest };
}

async function settle(run: () => Result | Promise<Result>, context: GraphQLContext): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    return { errors: [toPublicError(error, context)] };
  }
}

function tooManyOperations(): AppError {
  return new AppError("RATE_LIMITED", `At most ${WEBSOCKET_OPERATIONS_MAX} operations run at once on one connection.`, {
    retryAfterSeconds: 1,
  });
}

function completedId(text: string): string | null {
  try {
    const message: unknown = JSON.parse(text);
    if (typeof message !== "object" || message === null || !("type" in message) || !("id" in message)) return null;
    return message.type === "complete" && typeof message.id === "string" ? message.id : null;
  } catch {
    // graphql-ws closes the socket because of it.
    return null;
  }
}
