/** GraphQL over HTTP to a running gateway, as an operator. */

/** A refusal, or a gateway that does not answer, with a message for the operator. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";

  constructor(
    message: string,
    /** False: it was said that nothing was done. */
    readonly isOutcomeUnknown: boolean,
  ) {
    super(message);
  }
}

export interface Gateway {
  /** The data of the answer. Throws a GatewayError. */
  ask<Data>(query: string, variables: Readonly<Record<string, unknown>>): Promise<Data>;
  /** The text that a REST path answers. Throws a GatewayError. */
  read(path: string): Promise<string>;
}

interface Answer {
  readonly data?: unknown;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code?: string } }[];
}

const TIMEOUT_MS = 30_000;

/** `baseUrl` without /graphql. */
export function connectGateway(baseUrl: string, key: string): Gateway {
  const base = baseUrl.replace(/\/+$/, "");
  const url = `${base}/graphql`;
  return {
    async read(path) {
      const response = await send(base + path, key);
      const text = await response.text();
      if (response.ok) return text;
      throw new GatewayError(refusalOf(text) ?? `${base} answered with the status ${response.status}.`, response.status >= 500);
    },
    async ask<Data>(query: string, variables: Readonly<Record<string, unknown>>): Promise<Data> {
      const response = await send(url, key, JSON.stringify({ query, variables }));
      const answer = await readAnswer(response, url);
      if (answer.errors && answer.errors.length > 0) {
        const words = answer.errors.map(({ message, extensions }) => `${message} (${extensions?.code ?? "no code"})`);
        throw new GatewayError(words.join("\n"), response.status >= 500);
      }
      return answer.data as Data;
    },
  };
}

/** Without a body it is a GET. */
async function send(url: string, key: string, body?: string): Promise<Response> {
  const headers = {
    Authorization: `Bearer ${key}`,
    ...(body !== undefined && { "Content-Type": "application/json", Accept: "application/json" }),
  };
  const request = body === undefined ? { headers } : { method: "POST", headers, body };
  try {
    return await fetch(url, { ...request, redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    throw new GatewayError(`No gateway answers at ${url}: ${reasonOf(error)}`, true);
  }
}

/** The message of an error that the gateway sent; null for other texts. */
function refusalOf(text: string): string | null {
  try {
    const { error } = JSON.parse(text) as { readonly error?: { readonly message?: unknown; readonly code?: unknown } };
    return typeof error?.message === "string" ? `${error.message} (${String(error.code ?? "no code")})` : null;
  } catch {
    return null;
  }
}

async function readAnswer(response: Response, url: string): Promise<Answer> {
  try {
    const answer: unknown = JSON.parse(await response.text());
    if (typeof answer === "object" && answer !== null && ("data" in answer || "errors" in answer)) return answer as Answer;
  } catch {
    // Told below, as any other answer that is not one.
  }
  throw new GatewayError(`What answers at ${url} is no gateway (status ${response.status}).`, true);
}

/** fetch says "fetch failed"; why is in its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause;
  if (cause instanceof Error) return "code" in cause ? `${cause.message || "failed"} (${String(cause.code)})` : cause.message;
  return error.message;
}
