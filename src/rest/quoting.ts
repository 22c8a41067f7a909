/** Quotes over REST (docs/spec/quotes.md): `?quote=true` on the route of a generation, and `POST /v1/quote` for any of them. */
import { Readable } from "node:stream";
import type { Request, Response } from "express";
import type { Logger } from "pino";
import type { Quote, Quoting, RequestContext } from "../context.js";
import { deriveContext } from "../context.js";
import { invalidInput, wrongField } from "../errors.js";
import { parseQuery } from "../http/context.js";
import { Exchange } from "../http/exchange.js";
import { type FormOptions, UploadedFile, type UploadedFiles } from "../http/uploads.js";
import { isRecord } from "../lib/json.js";
import { setOwnValue } from "../lib/own-values.js";
import { quoteFrom } from "../services/generation/quote.js";
import { NO_REALTIME_QUOTE, type QuotedPath, type QuoteInput } from "../services/generation/quotes.js";
import { parseInput } from "../services/requests/input.js";
import { queryFlag } from "../services/requests/query-values.js";
import type { Route, RouteHandler } from "./route.js";
import { toTemplate } from "./route.js";

const QUOTE = "quote";

/** Moves `quote` from the query to the context. Throws BAD_REQUEST. */
export function withoutQuoting(
  ctx: { quoting?: Quoting | undefined },
  parameters: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (!Object.hasOwn(parameters, QUOTE)) return parameters;
  const { [QUOTE]: stated, ...rest } = parameters;
  const parsed = queryFlag.safeParse(stated);
  if (!parsed.success) throw wrongField(QUOTE, "expected true, false, 1 or 0");
  if (parsed.data) ctx.quoting = { quote: null };
  return rest;
}

/** Longest head of a data URL that is looked at. */
const DATA_URL = /^data:([^,;]{0,100})(?:;[^,]{0,100})?;base64,/i;

/** A form as JSON: files as data URLs, numbers and booleans as the text that a form would have. Throws BAD_REQUEST. */
export function readFormValues<Body>(form: FormOptions<Body>, stated: unknown): { readonly body: Body; readonly files: UploadedFiles } {
  const fields: Record<string, unknown> = Object.create(null);
  const files: Record<string, readonly UploadedFile[]> = Object.create(null);
  if (!isRecord(stated)) throw wrongField("body", "expected an object");
  for (const [name, value] of Object.entries(stated)) {
    if (Object.hasOwn(form.files, name))
      setOwnValue(
        files,
        name,
        [value].flat().map((each) => readFile(each, name)),
      );
    else setOwnValue(fields, name, typeof value === "number" || typeof value === "boolean" ? String(value) : value);
  }
  for (const [name, { isRequired }] of Object.entries(form.files)) {
    if (isRequired && !Object.hasOwn(files, name)) throw wrongField(name, "is required, as a data: URL");
  }
  return { body: parseInput(form.fields, fields), files };
}

function readFile(value: unknown, name: string): UploadedFile {
  const head = typeof value === "string" ? DATA_URL.exec(value) : null;
  if (typeof value !== "string" || head === null) throw wrongField(name, "must be a data: URL with base64");
  return new UploadedFile(name, head[1] ?? "", Buffer.from(value.slice(head[0].length), "base64"));
}

interface QuotedRoute {
  readonly shown: string;
  readonly prefix: string;
  /** The parameter between prefix and suffix; null: there is none. */
  readonly name: string | null;
  readonly suffix: string;
  readonly quote: NonNullable<RouteHandler["quote"]>;
}

/** The routes of generations, by their paths. */
export class QuotedRoutes {
  private readonly routes: QuotedRoute[] = [];

  constructor(private readonly log: Logger) {}

  /** A `route` whose generating routes are quoted. A path with POST and GET is quoted as POST. */
  recording(route: Route): Route {
    return (path, methods) => {
      const quote = methods.POST?.quote ?? methods.GET?.quote;
      if (quote) this.routes.push({ ...readTemplate(path), quote });
      route(path, methods);
    };
  }

  /** Throws BAD_REQUEST for a path that generates nothing, and rejects as the request itself does. */
  async quote(ctx: RequestContext, { path, body }: QuoteInput): Promise<Quote> {
    const { route, params, target } = this.find(path);
    const query = withoutQuoting({}, parseQuery(target).parameters);
    const quoting: Quoting = { quote: null };
    const bounded = deriveContext(ctx, { quoting, maxCost: ctx.maxCost });
    const request = { ctx: bounded, exchange: this.unwritten(target), params, query, body: body ?? {} };
    return quoteFrom(quoting, () => route.quote(request));
  }

  /** With or without the prefix /v1. */
  private find(path: QuotedPath): { readonly route: QuotedRoute; readonly params: Record<string, string>; readonly target: string } {
    const rooted = path.startsWith("/") ? path : `/${path}`;
    for (const target of [rooted, `/v1${rooted}`]) {
      const mark = target.indexOf("?");
      const pathname = mark === -1 ? target : target.slice(0, mark);
      for (const route of this.routes) {
        const params = match(route, pathname);
        if (params !== null) return { route, params, target };
      }
    }
    if (/^(?:\/v1)?\/realtime(?:[/?]|$)/.test(rooted)) throw invalidInput(NO_REALTIME_QUOTE, "path");
    throw invalidInput(`This path generates nothing. Paths with a quote: ${this.routes.map(({ shown }) => shown).join(", ")}.`, "path");
  }

  /** An exchange without a client: work that asks for a quote ends before it answers. */
  private unwritten(originalUrl: string): Exchange {
    const req = Object.assign(Readable.from([]), { headers: {}, params: {}, originalUrl, method: "POST" }) as unknown as Request;
    return new Exchange(req, UNWRITTEN, this.log);
  }
}

const UNWRITTEN = { closed: false, writableFinished: false, on: () => undefined, once: () => undefined } as unknown as Response;

/** Of a path in Express's form, with at most one parameter: `/text/*prompt`. */
function readTemplate(path: string): Omit<QuotedRoute, "quote"> {
  const shown = toTemplate(path);
  const [start, end] = [shown.indexOf("{"), shown.indexOf("}")];
  if (start === -1) return { shown, prefix: shown, name: null, suffix: "" };
  return { shown, prefix: shown.slice(0, start), name: shown.slice(start + 1, end), suffix: shown.slice(end + 1) };
}

/** The parameters; null when it does not fit. Throws BAD_REQUEST for a malformed escape. */
function match({ prefix, name, suffix }: QuotedRoute, pathname: string): Record<string, string> | null {
  if (name === null) return pathname === prefix ? {} : null;
  if (!pathname.startsWith(prefix) || !pathname.endsWith(suffix)) return null;
  const middle = pathname.slice(prefix.length, pathname.length - suffix.length);
  if (middle === "" || pathname.length < prefix.length + suffix.length) return null;
  try {
    return { [name]: decodeURIComponent(middle) };
  } catch {
    throw invalidInput("The path holds a malformed percent escape.", "path");
  }
}
