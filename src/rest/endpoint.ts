/**
 * The common work of every endpoint: credentials, input, context, answer, errors. A handler calls a service and presents the result; it has
 * no `try`.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type * as z from "zod";
import type { RequestContext } from "../context.js";
import { AppError, wrongField } from "../errors.js";
import { readJsonBody, TURN_BYTES } from "../http/body.js";
import { type Authenticator, HttpRequestContext, readCounted, readToken } from "../http/context.js";
import { explain, sendError, type ToErrorBody, toErrorAnswer, toErrorObject } from "../http/errors.js";
import type { Exchange } from "../http/exchange.js";
import { type FormOptions, isForm, readForm, type UploadedFiles } from "../http/uploads.js";
import { AnswerRecorder, type RecordedAnswer } from "../lib/answer-recorder.js";
import { clientAddressOf } from "../lib/client-address.js";
import { storedAnswerTypeOf } from "../lib/content-types.js";
import { isRecord } from "../lib/json.js";
import { ownValue } from "../lib/own-values.js";
import { formatSseEvent } from "../lib/sse.js";
import { type Requirement, requireCaller } from "../services/access/permissions.js";
import { assertNoWishes } from "../services/catalog/request-rates.js";
import { smallerCost, takeMaxCost } from "../services/credits/max-cost.js";
import { quoteFrom, toQuoteObject } from "../services/generation/quote.js";
import type { WishReader } from "../services/generation/routing/wish-reader.js";
import type { Taken } from "../services/generation/routing/wishes.js";
import type { Idempotency, IdempotentRun, StoredAnswer } from "../services/idempotency/idempotency.js";
import { IDEMPOTENT_ANSWER_BYTES_MAX } from "../services/idempotency/limits.js";
import type { PresetFormat } from "../services/presets/fill.js";
import type { BodyAllowance, BodyBudget } from "../services/requests/body-budget.js";
import { parseInput } from "../services/requests/input.js";
import type { Answer, ResultOf } from "./openapi/answer.js";
import { type Described, isBounded as isBoundedBy, type ParamsSchema } from "./openapi/contract.js";
import { readFormValues, withoutQuoting } from "./quoting.js";
import { type BoundedContext, type QuotedRequest, type RouteHandler, readParams, statedParams, withContract } from "./route.js";

/** The description of the operation, its input, its answer, and the handler, whose result is of the answer's type. */
export type EndpointOptions<A extends Answer, Body, Query, Params> = Described<A> &
  EndpointInput<Body, Query, Params> & {
    /** Resolves to the JSON value of a 200, or to undefined when it has answered itself. */
    readonly handler: (ctx: RequestContext, request: EndpointRequest<Body, Query, Params>) => ResultOf<A> | Promise<ResultOf<A>>;
  };

interface EndpointInput<Body, Query, Params> {
  /** True: anonymous callers are admitted. A wrong key is refused all the same (docs/spec/http.md#credentials). */
  readonly isPublic?: boolean;
  /**
   * The permission check of the service's method, made before the request is read, so that errors of the input do not reach callers without
   * permission. Default: any key or session.
   */
  readonly requires?: Requirement;
  /** Address of the metadata of the protected resource, which a 401 names (RFC 9728 5.1). */
  readonly resourceMetadata?: () => string;
  /** Agent runs may call it: it generates, or lists models. */
  readonly isForAgents?: boolean;
  /** The path's parameters, of which the handler gets none without this schema. */
  readonly params?: ParamsSchema<Params>;
  /** The JSON body; absent: no body is read. */
  readonly body?: z.ZodType<Body>;
  /** The multipart/form-data body, instead of a JSON one or beside `body`. */
  readonly form?: FormOptions<Body>;
  /** Schemas, for the description only, of a body that the handler reads itself. */
  readonly reads?: { readonly body: z.ZodType; readonly form: FormOptions<unknown>; readonly isFile: true };
  /** The query parameters other than `key`; absent: they are ignored. */
  readonly query?: z.ZodType<Query>;
  /** A POST that generates: accepts an Idempotency-Key. */
  readonly isGeneration?: boolean;
  /** The handler reads an Idempotency-Key itself. */
  readonly takesIdempotencyKey?: true;
  /** Accepts `max_cost`, which bounds the charge: generating GETs, and their relatives. Implied by `isGeneration`. */
  readonly isBounded?: boolean;
  /** The format of its body, into which a preset is filled; absent: it takes none. */
  readonly presetFormat?: PresetFormat;
  /** Its models are priced in the same units, so it takes `models`; implied by `presetFormat`. */
  readonly takesModels?: true;
  /** For a route whose model is its parameter `model`, which takes suffixes and presets as in a body: makes an ID of a name. */
  readonly modelInPath?: (name: string) => string;
  /** Default: the envelope of docs/spec/errors.md. */
  readonly toErrorBody?: ToErrorBody;
  /** A header beside `X-Request-Id` that has the request's id, where clients of another format read it. */
  readonly requestIdHeader?: "request-id";
}

export interface EndpointRequest<Body, Query, Params> {
  readonly params: Params;
  readonly body: Body;
  /** Of a form; else none. */
  readonly files: UploadedFiles;
  readonly query: Query;
  readonly exchange: Exchange;
  /** For a handler that reads the body itself. */
  readonly allowance: BodyAllowance;
}

export type Endpoint = <A extends Answer = never, Body = undefined, Query = undefined, Params = undefined>(
  options: EndpointOptions<A, Body, Query, Params>,
) => RouteHandler;

/** Makes the `endpoint()` of one application. */
export function createEndpoint(
  authenticator: Authenticator,
  trustProxyHops: number,
  bodies: BodyBudget,
  idempotency?: Idempotency,
  wishes?: WishReader,
): Endpoint {
  return (options) => {
    const {
      isPublic = false,
      requires = requireCaller,
      isGeneration = false,
      params,
      body,
      form,
      query,
      resourceMetadata,
      toErrorBody,
      requestIdHeader,
      presetFormat,
      modelInPath,
      handler,
    } = options;
    const isBounded = isBoundedBy(options);
    const answer = async (exchange: Exchange): Promise<void> => {
      let allowance: BodyAllowance | null = null;
      exchange.note.isGeneration = isBounded;
      if (requestIdHeader) exchange.repeatRequestId(requestIdHeader);
      try {
        const clientAddress = clientAddressOf(exchange.req, trustProxyHops);
        const read = readCounted(authenticator, clientAddress, () => readToken(exchange.req, exchange));
        const known = authenticator.authenticate(read instanceof Promise ? await read : read, clientAddress, exchange.req);
        // A cached key takes no asynchronous step.
        const caller = known instanceof Promise ? await known : known;
        const ctx = new HttpRequestContext(caller, exchange, clientAddress);
        // Caches treat an answer to a key as private, but not one to a cookie.
        if (caller.kind === "session") exchange.setHeaders(PRIVATE);
        // Before the body is read, so that bodies of refused callers are not parsed.
        if (!isPublic) requires(ctx);
        const { parameters } = exchange.query;
        allowance = bodies.allow(caller, clientAddress);
        const bounding = isBounded ? ctx : null;
        const withoutCap = withoutBound(bounding, isBounded ? withoutQuoting(ctx, parameters) : parameters);
        if (isBounded) assertNoWishes(withoutCap);
        const path = modelInPath && { toId: modelInPath, parameters: statedParams(params, exchange) };
        const taker = isBounded || modelInPath ? { ctx, reader: wishes, format: presetFormat, path } : null;
        const isInQuery = body === undefined && form === undefined;
        const parsedQuery = parseOptional(query, isInQuery && taker ? await takeWishes({ ...taker, ...NEITHER }, withoutCap) : withoutCap);
        const sent =
          form && (!body || isForm(exchange.req.headers["content-type"]))
            ? await readFormInput(exchange, form, allowance, bounding, taker)
            : { body: await readBody(exchange, body, allowance, bounding, taker), files: NO_FILES };
        if (allowance.bytes > TURN_BYTES) {
          ctx.hasLargeInput = true;
          await nextTurn();
        }
        const request = {
          params: path ? parseOptional(params, path.parameters) : readParams(params, exchange),
          query: parsedQuery,
          body: sent.body,
          files: sent.files,
          exchange,
          allowance,
        };
        if (ctx.quoting) {
          const quote = await quoteFrom(ctx.quoting, () => handler(ctx, request));
          exchange.clearHeaders();
          return exchange.sendJson(toQuoteObject(quote));
        }
        const key = isGeneration ? exchange.req.headers["idempotency-key"] : undefined;
        if (key === undefined || !idempotency) sendAnswer(exchange, await handler(ctx, request));
        else {
          // A preset may have changed before the request is repeated.
          const stated = ctx.unfilled === undefined ? toInput(request) : { ...toInput(request), body: ctx.unfilled };
          const input = ctx.wishes === undefined || ctx.unfilled !== undefined ? stated : { ...stated, wishes: ctx.wishes };
          const once = { ctx, exchange, key: String(key), input, toErrorBody };
          await answerOnce(idempotency, once, async () => sendAnswer(exchange, await handler(ctx, request)));
        }
      } catch (error) {
        sendError(exchange, error, resourceMetadata?.(), toErrorBody);
      } finally {
        allowance?.release();
      }
    };
    const quote = async (quoted: QuotedRequest): Promise<void> => {
      const { ctx, exchange } = quoted;
      requires(ctx);
      const allowance = bodies.allow(ctx.caller, ctx.clientAddress);
      try {
        const parameters = withoutBound(ctx, quoted.query);
        assertNoWishes(parameters);
        const bounded = withoutBound(ctx, quoted.body);
        const path = modelInPath && { toId: modelInPath, parameters: { ...quoted.params } };
        const taker = { ctx, reader: wishes, format: presetFormat, path };
        const isInQuery = body === undefined && form === undefined;
        const asked = isInQuery ? await takeWishes({ ...taker, format: undefined }, parameters) : parameters;
        const stated = isInQuery ? bounded : await takeWishes(taker, bounded);
        const sent = form && !body ? readFormValues(form, stated) : { body: parseOptional(body, stated), files: NO_FILES };
        const parsed = { params: parseOptional(params, path?.parameters ?? quoted.params), query: parseOptional(query, asked) };
        await handler(ctx, { ...parsed, ...sent, exchange, allowance });
      } finally {
        allowance.release();
      }
    };
    return withContract(answer, options, isBounded ? quote : undefined);
  };
}

const PRIVATE = { "Cache-Control": "private, no-store" };

/** Everything that decides an answer, except the key. */
function toInput({ query, body, files }: Pick<EndpointRequest<unknown, unknown, unknown>, "query" | "body" | "files">): object {
  return { query, body, files };
}

/** Undefined: the handler has answered itself. */
function sendAnswer(exchange: Exchange, answer: unknown): void {
  if (answer !== undefined) exchange.sendJson(answer);
}

type BodyInput<Body> = Pick<EndpointRequest<Body, unknown, unknown>, "body" | "files">;

const NO_FILES: UploadedFiles = {};

async function readFormInput<Body>(
  { req }: Exchange,
  form: FormOptions<Body>,
  allowance: BodyAllowance,
  bounding: HttpRequestContext | null,
  taker: WishTaker | null,
): Promise<BodyInput<Body>> {
  const { fields, files } = await readForm(req, form, allowance);
  const bounded = withoutBound(bounding, fields);
  const stated = taker ? await takeWishes({ ...taker, ...NEITHER }, bounded) : bounded;
  return { body: parseInput(form.fields, stated), files };
}

async function readBody<Body>(
  exchange: Exchange,
  body: z.ZodType<Body> | undefined,
  allowance: BodyAllowance,
  bounding: HttpRequestContext | null,
  taker: WishTaker | null,
): Promise<Body> {
  if (body === undefined) return undefined as Body;
  const bounded = withoutBound(bounding, await readJsonBody(exchange.req, allowance));
  if (!taker) return parseInput(body, bounded);
  const taken = takeWishes(taker, bounded);
  return parseInput(body, taken instanceof Promise ? await taken : taken);
}

interface WishTaker {
  readonly ctx: BoundedContext;
  /** Absent: nothing is taken. */
  readonly reader: WishReader | undefined;
  readonly format: PresetFormat | undefined;
  readonly path?: PathModel | undefined;
}

/** Queries and forms take no preset, and no model of the path. */
const NEITHER = { format: undefined, path: undefined };

/** The model of a path. */
interface PathModel {
  readonly toId: (name: string) => string;
  readonly parameters: Record<string, string>;
}

/** Moves the wishes from the input, and from the model of its path, to the context. Throws BAD_REQUEST. */
function takeWishes<Input>({ ctx, reader, format, path }: WishTaker, input: Input): Input | Promise<Input> {
  const taken = reader?.take(ctx, path && isRecord(input) ? { ...input, model: path.toId(path.parameters.model ?? "") } : input, format);
  if (!taken) return input;
  const move = ({ rest, wishes, isFilled }: Taken<Input>) => {
    ctx.wishes = wishes;
    if (isFilled) ctx.unfilled = input;
    return path ? withoutPathModel(rest, input, path) : rest;
  };
  return taken instanceof Promise ? taken.then(move) : move(taken);
}

/** Names the model of the wishes in the path; a model of the body stays there. Throws BAD_REQUEST. */
function withoutPathModel<Input>(rest: Input, input: Input, { parameters }: PathModel): Input {
  const { model, ...others } = rest as Readonly<Record<string, unknown>>;
  if (typeof model !== "string")
    throw wrongField("model", "the preset states no model. Name a model in the path, and the preset as the field preset");
  parameters.model = model;
  const own = ownValue(input as Readonly<Record<string, unknown>>, "model");
  return (own === undefined ? others : { ...others, model: own }) as Input;
}

/** Moves `max_cost` from the input to the context; a null context has no bound. Throws BAD_REQUEST. */
function withoutBound<Input>(ctx: BoundedContext | null, input: Input): Input {
  if (ctx === null) return input;
  const taken = takeMaxCost(input);
  if (taken === null) return input;
  if (taken.maxCost) ctx.maxCost = smallerCost(ctx.maxCost, taken.maxCost);
  return taken.rest;
}

/** Without a schema the input is undefined, the default of the type parameter. */
function parseOptional<Output>(schema: z.ZodType<Output> | undefined, input: unknown): Output {
  return schema === undefined ? (undefined as Output) : parseInput(schema, input);
}

// Idempotency-Key on REST (docs/spec/generation.md#idempotency): a generation's answer is stored before its last byte is sent.

interface IdempotentRequest {
  readonly ctx: HttpRequestContext;
  readonly exchange: Exchange;
  readonly key: string;
  /** The parsed body, with its files. */
  readonly input: unknown;
  readonly toErrorBody: ToErrorBody | undefined;
}

/** Runs `work` and stores its answer, or sends the stored one. Rejects as `work` does, and with CONFLICT. */
async function answerOnce(idempotency: Idempotency, request: IdempotentRequest, work: () => Promise<void>): Promise<void> {
  const { ctx, exchange, key, input, toErrorBody } = request;
  const begun = await idempotency.begin(ctx, { key, operation: `${exchange.req.method} ${exchange.path}`, input });
  if (begun.kind === "replay") return replay(exchange, begun.answer);
  const { run } = begun;
  ctx.reservedId = run.reservedId;
  const recorder = new AnswerRecorder(exchange.res, IDEMPOTENT_ANSWER_BYTES_MAX, async (answer) => {
    if (answer) await run.succeed(answer);
    else await run.omit();
  });
  try {
    await work();
  } catch (error) {
    recorder.stop();
    const reported = explain(error, exchange);
    const reason = `The answer broke off: ${reported.message}`;
    await run.fail(() =>
      recorder.isBegun ? toCut(recorder.answer(), reason, run, exchange) : toErrorAnswer(reported, exchange.requestId, toErrorBody),
    );
    throw reported;
  }
  // The client has disconnected.
  if (!recorder.isEnded) await run.fail(() => toCut(recorder.answer(), "The answer was cut when its reader left.", run, exchange));
}

function replay(exchange: Exchange, { statusCode, headers, body }: StoredAnswer): void {
  const contentType = storedAnswerTypeOf(headers["content-type"] ?? "");
  exchange.writeHead(statusCode, {
    ...headers,
    "content-type": contentType,
    "X-Idempotent-Replay": "true",
    "Content-Length": body.byteLength,
  });
  exchange.res.end(body);
}

/**
 * Unspecified: a stream whose client disconnected is replayed up to that point, with an error at its end; other answers have nothing to
 * replay.
 */
function toCut(answer: RecordedAnswer | null, reason: string, { generationId }: IdempotentRun, { requestId }: Exchange): StoredAnswer {
  const message = `${reason} What was generated until then was charged as generation ${generationId}.`;
  const error = new AppError("CONFLICT", message, { details: { generationId } });
  if (!answer?.headers["content-type"]?.startsWith("text/event-stream")) return toErrorAnswer(error, requestId);
  const reported = toErrorObject(error, requestId);
  const { code, param } = reported;
  const data = JSON.stringify({ type: "error", code, message, param, error: reported });
  const event = formatSseEvent(data, hasNamedEvents(answer.body) ? "error" : undefined);
  return { ...answer, body: Buffer.concat([answer.body, event]) };
}

/** Streams of responses name their events; those of chats do not. Data has no line break of its own. */
function hasNamedEvents(body: Uint8Array): boolean {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return bytes.indexOf("event: ") === 0 || bytes.includes("\nevent: ");
}
