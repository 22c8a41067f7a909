/**
 * A broker at an address of the operator (docs/spec/connected-apps.md#broker; docs/connected-apps.md has its side). Its answers are
 * bounded, checked and never passed on as they are; its redirects are not followed; its key is in no message and no log.
 */
import { type Dispatcher, Pool } from "undici";
import * as z from "zod";
import { AppError, serviceUnavailable, upstreamFailed, upstreamTimedOut } from "../../errors.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import { withoutTrailing } from "../../lib/urls.js";
import { JSON_BOUNDS } from "../../limits.js";
import {
  CONNECTED_APP_STATUSES,
  type ConnectedApp,
  type ConnectedAppStatus,
  type IntegrationsBroker,
  type NewConnection,
  NO_BROKER,
  type RequestedConnection,
  type Toolkit,
  tooManyConnections,
  unknownToolkit,
} from "./broker.js";
import {
  BROKER_ANSWER_BYTES_MAX,
  BROKER_CONNECT_TIMEOUT_MS,
  BROKER_CONNECTIONS_MAX,
  BROKER_ID_CHARS_MAX,
  BROKER_REQUESTS_AT_ONCE_MAX,
  BROKER_TIMEOUT_MS,
  CONNECTED_APPS_PER_ACCOUNT_MAX,
} from "./limits.js";

// Answers of an HTTP broker, read leniently: unknown fields are ignored, decorative ones may be missing. Lists are `{ data: [...] }`;
// `items` for `data`, or a bare list, also pass.

/** Part of a path: visible ASCII, and no dot segment. */
const id = z
  .string()
  .max(BROKER_ID_CHARS_MAX)
  .regex(/^(?!\.{1,2}$)[\x21-\x7e]+$/);
const slug = z.string().min(1).max(BROKER_ID_CHARS_MAX);
const text = z
  .string()
  .nullish()
  .transform((value) => value || null);
const webUrl = z.url({ protocol: /^https?$/ });
/** Shown on pages: anything but a web address counts as none. */
const logo = webUrl.nullish().catch(null);
/** An unknown status means that the app cannot be used. */
const status = z.string().transform((value): ConnectedAppStatus => {
  const known = value.toLowerCase();
  if (known === "initializing") return "initiated";
  return CONNECTED_APP_STATUSES.find((each) => each === known) ?? "inactive";
});

const toolkit = z
  .object({ slug, name: text, description: text, logo })
  .transform(
    (row): Toolkit => ({ slug: row.slug, name: row.name ?? row.slug, description: row.description ?? "", logo: row.logo ?? null }),
  );

const connection = z
  .object({ id, toolkit: slug, name: text, description: text, logo, alias: text, status, account: z.string().nullish() })
  .transform(({ account, ...row }): { account: string | null; app: ConnectedApp } => ({
    account: account ?? null,
    app: { ...row, description: row.description ?? "", logo: row.logo ?? null },
  }));

function listOf<Row>(row: z.ZodType<Row>) {
  const rows = z.array(row);
  return z.union([rows, z.object({ data: rows }).transform(({ data }) => data), z.object({ items: rows }).transform(({ items }) => items)]);
}

const toolkitsAnswer = listOf(toolkit);
/** `account` is the owner, where the broker names one. */
const connectionsAnswer = listOf(connection);
const connectAnswer = z.object({ id, url: webUrl });

export interface HttpBrokerSettings {
  /** http or https; its path prefixes those of requests. */
  readonly url: string;
  /** Sent as a bearer token; null: none. */
  readonly key: string | null;
}

/** The broker: built in, none, or over HTTP. */
export type IntegrationsSettings =
  | { readonly kind: "development" }
  | { readonly kind: "off" }
  | ({ readonly kind: "http" } & HttpBrokerSettings);

interface BrokerRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: object;
  /** Statuses, beside success, that the caller handles. */
  readonly known?: ReadonlySet<number>;
  readonly signal: AbortSignal;
}

interface BrokerAnswer {
  readonly status: number;
  readonly bytes: Buffer;
}

const NOT_FOUND: ReadonlySet<number> = new Set([404, 410]);
/** Statuses of a broker for an unknown toolkit. */
const NOT_TAKEN: ReadonlySet<number> = new Set([400, 404, 422]);
const TIMEOUTS: ReadonlySet<string> = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "UND_ERR_CONNECT_TIMEOUT"]);

export class HttpBroker implements IntegrationsBroker {
  private readonly pool: Pool;
  private readonly basePath: string;
  private readonly headers: Readonly<Record<string, string>>;
  private underWay = 0;

  constructor(
    { url, key }: HttpBrokerSettings,
    private readonly timeoutMs: number = BROKER_TIMEOUT_MS,
  ) {
    const { origin, pathname } = new URL(url);
    this.basePath = withoutTrailing(pathname, "/");
    this.headers = {
      accept: "application/json",
      "accept-encoding": "identity",
      "user-agent": "sluice",
      ...(key !== null && { authorization: `Bearer ${key}` }),
    };
    this.pool = new Pool(origin, {
      connections: BROKER_CONNECTIONS_MAX,
      pipelining: 1,
      connect: { timeout: BROKER_CONNECT_TIMEOUT_MS },
      keepAliveTimeout: 4_000,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
  }

  async listToolkits(search: string, signal: AbortSignal): Promise<readonly Toolkit[]> {
    const query = search === "" ? "" : `?search=${encodeURIComponent(search)}`;
    return parse(toolkitsAnswer, await this.ask({ method: "GET", path: `/toolkits${query}`, signal }));
  }

  async listConnections(accountId: string, signal: AbortSignal): Promise<readonly ConnectedApp[]> {
    const path = `/connections?account=${encodeURIComponent(accountId)}`;
    const rows = parse(connectionsAnswer, await this.ask({ method: "GET", path, signal }));
    return rows.filter(({ account }) => account === null || account === accountId).map(({ app }) => app);
  }

  async connect({ accountId, toolkit, callbackUrl }: RequestedConnection, signal: AbortSignal): Promise<NewConnection> {
    const there = await this.listConnections(accountId, signal);
    if (there.length >= CONNECTED_APPS_PER_ACCOUNT_MAX) throw tooManyConnections();
    const body = { account: accountId, toolkit, callbackUrl };
    const answer = await this.ask({ method: "POST", path: "/connections", body, known: NOT_TAKEN, signal });
    if (NOT_TAKEN.has(answer.status)) throw unknownToolkit(toolkit);
    return parse(connectAnswer, answer);
  }

  /** The broker does not check the owner of a connection. */
  async disconnect(accountId: string, id: string, signal: AbortSignal): Promise<ConnectedApp | null> {
    const own = (await this.listConnections(accountId, signal)).find((app) => app.id === id);
    if (!own) return null;
    const path = `/connections/${encodeURIComponent(id)}`;
    const { status } = await this.ask({ method: "DELETE", path, known: NOT_FOUND, signal });
    return NOT_FOUND.has(status) ? null : own;
  }

  close(): Promise<void> {
    return this.pool.close();
  }

  private async ask(request: BrokerRequest): Promise<BrokerAnswer> {
    const { signal } = request;
    signal.throwIfAborted();
    if (this.underWay >= BROKER_REQUESTS_AT_ONCE_MAX) throw serviceUnavailable("The broker of connected apps is busy.");
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(), this.timeoutMs);
    const leave = () => ending.abort();
    signal.addEventListener("abort", leave, { once: true });
    this.underWay += 1;
    try {
      const answer = await this.send(request, ending.signal);
      const isSuccess = answer.status >= 200 && answer.status < 300;
      if (!isSuccess && !request.known?.has(answer.status)) throw refused(answer.status);
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      throw ending.signal.aborted || isTimeout(error) ? timedOut(error) : explain(error);
    } finally {
      this.underWay -= 1;
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
    }
  }

  private async send({ method, path, body }: BrokerRequest, signal: AbortSignal): Promise<BrokerAnswer> {
    const answer = await this.pool.request({
      method,
      path: this.basePath + path,
      headers: { ...this.headers, ...(body && { "content-type": "application/json" }) },
      body: body ? JSON.stringify(body) : null,
      signal,
    });
    return { status: answer.statusCode, bytes: await readBounded(answer) };
  }
}

async function readBounded({ body }: Dispatcher.ResponseData): Promise<Buffer> {
  // The stream reports an unread body as an error, which does not matter here.
  body.on("error", () => undefined);
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of body as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > BROKER_ANSWER_BYTES_MAX) throw misanswered(new Error(`more than ${BROKER_ANSWER_BYTES_MAX} bytes`));
      parts.push(part);
    }
  } finally {
    body.destroy();
  }
  return Buffer.concat(parts, size);
}

function parse<Answer>(schema: z.ZodType<Answer>, { bytes }: BrokerAnswer): Answer {
  let value: unknown;
  try {
    value = new BoundedJson(JSON_BOUNDS).parse(bytes);
  } catch {
    // The parser's message would quote the answer.
    throw misanswered(new Error("not JSON"));
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw misanswered(parsed.error);
  return parsed.data;
}

function misanswered(cause: unknown): AppError {
  return upstreamFailed("The broker of connected apps sent an invalid answer.", { cause });
}

function refused(status: number): AppError {
  if (status === 408 || status === 524) return timedOut(new Error(`status ${status}`));
  return upstreamFailed("The broker of connected apps refused the request.", { cause: new Error(`status ${status}`) });
}

function timedOut(cause: unknown): AppError {
  return upstreamTimedOut("The broker of connected apps did not answer in time.", { cause });
}

function explain(error: unknown): unknown {
  return error instanceof AppError ? error : upstreamFailed("The broker of connected apps cannot be reached.", { cause: error });
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && "code" in error && TIMEOUTS.has(String(error.code));
}

export function brokerOf(settings: IntegrationsSettings, development: IntegrationsBroker): IntegrationsBroker {
  switch (settings.kind) {
    case "development":
      return development;
    case "off":
      return NO_BROKER;
    case "http":
      return new HttpBroker(settings);
  }
}
