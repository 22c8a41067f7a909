/** Requests to a gateway's REST face, with a key or without. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { TestApp } from "../support/app.js";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body parsed. */
  json<Body = Record<string, unknown>>(): Body;
}

export interface RequestOptions {
  /** Null: none. */
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; a string as it is. */
  readonly body?: unknown;
}

export interface Client {
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  get(path: string, options?: RequestOptions): Promise<Answer>;
  post(path: string, body: unknown, options?: RequestOptions): Promise<Answer>;
}

/** Sends `key` with every request that does not say otherwise. */
export function createClient(baseUrl: string, key: string | null): Client {
  const request: Client["request"] = async (method, path, options = {}) => {
    const sentKey = options.key === undefined ? key : options.key;
    const response = await fetch(baseUrl + path, {
      method,
      headers: {
        ...(sentKey !== null && { Authorization: `Bearer ${sentKey}` }),
        ...(options.body !== undefined && { "Content-Type": "application/json" }),
        ...options.headers,
      },
      ...(options.body !== undefined && { body: typeof options.body === "string" ? options.body : JSON.stringify(options.body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: <Body>() => JSON.parse(text) as Body };
  };
  return {
    request,
    get: (path, options) => request("GET", path, options),
    post: (path, body, options) => request("POST", path, { ...options, body }),
  };
}

export interface CreatedKey {
  readonly id: string;
  readonly key: string;
}

/** A new key of the app's owner. */
export async function createKey(app: TestApp, input: Readonly<Record<string, unknown>> = {}): Promise<CreatedKey> {
  const answer = await createClient(app.baseUrl, app.key).post("/account/keys", { name: "test", ...input });
  expect(answer.status).toBe(200);
  return answer.json<CreatedKey>();
}

/** The address that a key was granted for; null: not bound to one. */
export async function resourceOf({ baseUrl }: TestApp, key: string): Promise<string | null> {
  const answer = await createClient(baseUrl, key).post("/graphql", { query: "{ me { currentApiKey { resource } } }" });
  return answer.json<{ data: { me: { currentApiKey: { resource: string | null } } } }>().data.me.currentApiKey.resource;
}

export interface UsageJson {
  readonly usage: readonly Record<string, unknown>[];
  readonly count: number;
  readonly next_before: string | null;
  readonly next_before_id: string | null;
}

/** The newest usage row once there is one for which `isWanted`; the test's own time limit ends the wait. */
export async function waitForUsage(client: Client, isWanted: (row: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
  for (;;) {
    const { usage } = (await client.get("/account/usage")).json<UsageJson>();
    const row = usage.find(isWanted);
    if (row !== undefined) return row;
    await sleep(10);
  }
}

/** What an error must look like on every route (docs/spec/errors.md#envelope). */
export function expectEnvelope(answer: Answer, status: number, code: string): void {
  const body = answer.json<{ error: { details?: unknown } }>();
  expect(body).toEqual({
    status,
    success: false,
    error: {
      code,
      message: expect.stringMatching(/\S/),
      type: expect.stringMatching(/^[a-z_]+$/),
      param: expect.toBeOneOf([null, expect.any(String)]),
      requestId: answer.headers.get("x-request-id"),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      ...(body.error.details !== undefined && { details: expect.any(Object) }),
    },
  });
  expect(answer.status).toBe(status);
  expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
}
