/** What clients of all kinds do with their defaults, against one app that is configured as on a public host: strangers may not ask for the schema. */
import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { ApolloClient, HttpLink, InMemoryCache } from "@apollo/client";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";
import { generate } from "@graphql-codegen/cli";
import { fetchExchange, Client as UrqlClient, type ClientOptions as UrqlOptions } from "@urql/core";
import { getIntrospectionQuery, parse } from "graphql";
import { createClient as createSseClient } from "graphql-sse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { printSdl } from "../../src/graphql/schema.js";
import { GrantCreditsDocument, MyIdDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createEmptyDir } from "../support/database.js";
import { inTime } from "../support/eventually.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { json } from "../support/upstream-replies.js";
import { type Answer, authorization, codes, connect, execute, executeText, ok, post, subscribeSse, subscribeWith } from "./client.js";

const run = promisify(execFile);

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp({ config: { graphql: { introspection: false, graphiql: false } } });
});

afterAll(async () => {
  await app.close();
});

interface Part extends Answer {
  readonly label?: string;
  readonly path?: readonly (string | number)[];
  readonly items?: readonly unknown[];
  readonly hasNext?: boolean;
  readonly incremental?: readonly Part[];
}

const MULTIPART = { accept: "multipart/mixed" };
const DEFERRED = '{ me { id ...More @defer(label: "more") } } fragment More on Account { balance { available } }';

/** The parts of an answer in their order, each with its increments. */
async function partsOf(response: Response): Promise<Part[]> {
  expect(response.headers.get("content-type")).toBe('multipart/mixed; boundary="-"');
  const pieces = (await response.text()).split("\r\n---");
  expect(pieces.at(-1)).toBe("--\r\n");
  return pieces.slice(1, -1).map((piece) => JSON.parse(piece.slice(piece.indexOf("\r\n\r\n"))) as Part);
}

function incrementsOf(parts: readonly Part[]): Part[] {
  return parts.flatMap(({ incremental = [] }) => incremental);
}

describe("an answer in parts", () => {
  it("comes as multipart/mixed, as events and on a WebSocket, and whole to those who ask for JSON", async () => {
    const client = connect(app);
    const ways = [
      await partsOf(await post(app, { query: DEFERRED }, { accept: "multipart/mixed, application/json" })),
      await subscribeSse(app, { query: DEFERRED }).rest(),
      await subscribeWith(client, { query: DEFERRED }).rest(),
    ] as Part[][];
    const whole = (await (await post(app, { query: DEFERRED }, { accept: "application/json, */*" })).json()) as Answer;
    await client.dispose();

    const balance = { available: expect.any(String) };
    for (const [first, ...rest] of ways) {
      expect(first).toMatchObject({ data: { me: { id: expect.any(String) } }, hasNext: true, extensions: { cost: { maximum: 5_000 } } });
      expect(first?.data?.me).not.toHaveProperty("balance");
      expect(incrementsOf(rest)).toEqual([{ label: "more", path: ["me"], data: { balance } }]);
      expect(rest.at(-1)?.hasNext).toBe(false);
      for (const part of rest) expect(part).not.toHaveProperty("extensions");
    }
    expect(whole.data).toMatchObject({ me: { id: expect.any(String), balance } });
  });

  it("comes item by item of a list", async () => {
    const query = "{ me { apiKeys(first: 5) { edges @stream(initialCount: 0) { node { name } } } } }";

    const parts = await partsOf(await post(app, { query }, MULTIPART));

    expect(parts[0]?.data).toEqual({ me: { apiKeys: { edges: [] } } });
    expect(incrementsOf(parts).flatMap(({ items = [] }) => items)).toEqual([{ node: { name: expect.any(String) } }]);
  });

  it("has at most 200 parts, and the cost of the whole", async () => {
    const query = (more: string) =>
      `{ me { ${more} usage(first: 100) { edges @stream { cursor ... @defer(label: "node") { node { id } } } } } }`;
    const ask = async (more: string) => post(app, { query: query(more) }, MULTIPART);

    const most = await partsOf(await ask(""));
    const [tooMany] = await partsOf(await ask('... @defer(label: "one") { handle }'));
    const [everything] = await partsOf(
      await post(app, { query: "{ ... @defer { me { usage(first: 100) { edges @stream { ... @defer { cursor } } } } } }" }, MULTIPART),
    );

    expect(most[0]?.errors).toBeUndefined();
    expect(codes(tooMany ?? {})).toEqual(["BAD_REQUEST"]);
    expect(tooMany?.errors?.[0]?.message).toMatch(/up to 201 parts, and at most 200/);
    expect(everything?.errors?.[0]?.message).toMatch(/up to 201 parts/);
  });

  it("hides internal errors in every part", async () => {
    const secret = "a detail of the database";
    const restore = standIn(app.services.accounts, "own", () => Promise.reject(new Error(secret)));
    const query = "{ __typename ... @defer { me { id } } }";
    const client = connect(app);

    const answers = [
      ...(await partsOf(await post(app, { query }, MULTIPART))),
      ...((await subscribeWith(client, { query }).rest()) as Part[]),
    ];
    await client.dispose();
    restore();

    expect(incrementsOf(answers).flatMap(codes)).toEqual(["INTERNAL_ERROR", "INTERNAL_ERROR"]);
    expect(JSON.stringify(answers)).not.toContain(secret);
    expect(app.logs.filter((line) => JSON.stringify(line).includes(secret))).toHaveLength(2);
  });

  it("cancels the remaining parts when it is left", async () => {
    const left: Promise<void>[] = [];
    const restore = standIn(app.services.accounts, "own", ({ signal }) => {
      const gone = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      left.push(gone);
      return gone.then(() => Promise.reject(new Error("left")));
    });
    const query = "{ __typename ... @defer { me { id } } }";
    const leaving = new AbortController();
    const response = await post(app, { query }, MULTIPART, leaving.signal);
    const reader = response.body?.getReader();
    await reader?.read();
    const client = connect(app);
    const live = subscribeWith(client, { query });
    await live.next();

    leaving.abort();
    live.leave();

    expect(left).toHaveLength(2);
    await inTime(Promise.all(left), "the remaining parts were not cancelled");
    await client.dispose();
    restore();
  });

  it("has the charged receipt, and is kept whole for an Idempotency-Key", async () => {
    const query = `mutation { createChatCompletion(input: { model: "acme/chat", messages: [{ role: USER, content: "Hi" }] }) {
      completion { choices { message { content } } } ... @defer { receipt { generationId cost } } } }`;
    const rows = () => app.database.prisma.usageRecord.count();
    const before = await rows();
    app.upstream.replyNext(json(chatCompletion({ content: "Paid." })), json(chatCompletion({ content: "Once." })));

    const parts = await partsOf(await post(app, { query }, MULTIPART));
    const [receipt] = incrementsOf(parts);
    const headers = { accept: "multipart/mixed, application/json", "idempotency-key": randomUUID() };
    const kept = [await post(app, { query }, headers), await post(app, { query }, headers)];
    const [first, replayed] = (await Promise.all(kept.map((response) => response.json()))) as Answer[];

    expect(parts[0]?.data).toEqual({ createChatCompletion: { completion: { choices: [{ message: { content: "Paid." } }] } } });
    expect(receipt).toMatchObject({ path: ["createChatCompletion"], data: { receipt: { cost: expect.stringMatching(/^0\.0/) } } });
    expect(first?.data).toMatchObject({ createChatCompletion: { receipt: { cost: expect.stringMatching(/^0\.0/) } } });
    expect(replayed).toMatchObject({ data: first?.data, extensions: { idempotentReplay: true, cost: { maximum: 5_000 } } });
    expect(await rows()).toBe(before + 2);
  });
});

/** The method of each request that a client made, and the status of its answer. */
function recording(): { readonly fetch: typeof fetch; readonly seen: string[] } {
  const seen: string[] = [];
  return {
    seen,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      seen.push(`${init?.method ?? "GET"} ${response.status}`);
      return response;
    },
  };
}

interface Run {
  readonly seen: readonly string[];
  readonly data: unknown;
}

const ME = "query Me { me { id handle } }";
const CHANGES = "subscription { balanceChanged { account { id balance { available } } } }";

async function byApollo(options: Partial<HttpLink.Options>, persistedLink?: PersistedQueryLink): Promise<Run> {
  const { fetch, seen } = recording();
  const http = new HttpLink({ uri: `${app.baseUrl}/graphql`, headers: authorization(app), fetch, ...options });
  const client = new ApolloClient({ link: persistedLink ? persistedLink.concat(http) : http, cache: new InMemoryCache() });
  const { data } = await client.query({ query: parse(ME) });
  return { seen, data };
}

async function byUrql(options: Partial<UrqlOptions>): Promise<Run> {
  const { fetch, seen } = recording();
  const client = new UrqlClient({
    url: `${app.baseUrl}/graphql`,
    exchanges: [fetchExchange],
    fetchOptions: { headers: authorization(app) },
    fetch,
    ...options,
  });
  const { data, error } = await client.query(ME, {}).toPromise();
  if (error) throw error;
  return { seen, data };
}

const sha256 = async (text: string) => createHash("sha256").update(text).digest("hex");

describe("an unmodified client", () => {
  it.each<readonly [string, () => Promise<Run>, readonly string[]]>([
    ["Apollo Client", () => byApollo({}), ["POST 200"]],
    ["Apollo Client with GET for queries", () => byApollo({ useGETForQueries: true }), ["GET 200"]],
    [
      "Apollo Client with automatic persisted queries, at first",
      () => byApollo({}, new PersistedQueryLink({ sha256 })),
      ["POST 200", "POST 200"],
    ],
    [
      "Apollo Client with automatic persisted queries over GET, then",
      () => byApollo({}, new PersistedQueryLink({ sha256, useGETForHashedQueries: true })),
      ["GET 200"],
    ],
    ["urql", () => byUrql({}), ["GET 200"]],
    ["urql with POST alone", () => byUrql({ preferGetMethod: false }), ["POST 200"]],
  ])("sends a query: %s", async (_name, run, requests) => {
    const { seen, data } = await run();

    expect(data).toMatchObject({ me: { id: expect.any(String), handle: expect.any(String) } });
    expect(seen).toEqual(requests);
  });

  it("receives changes: graphql-ws, graphql-sse in distinct connections, and urql over server-sent events", async () => {
    const url = `${app.baseUrl}/graphql`;
    const overSocket = connect(app);
    const overEvents = createSseClient({ url, headers: authorization(app) });
    const urql = new UrqlClient({
      url,
      exchanges: [fetchExchange],
      fetchSubscriptions: true,
      fetchOptions: { headers: authorization(app) },
    });
    const told = { socket: [] as Answer[], events: [] as Answer[], urql: [] as Answer[] };
    const into = (answers: Answer[]) => {
      const next = (result: unknown) => void answers.push(result as Answer);
      return { next, error: next, complete: () => undefined };
    };
    const leaves = [
      overSocket.subscribe({ query: CHANGES }, into(told.socket)),
      overEvents.subscribe({ query: CHANGES }, into(told.events)),
      urql.subscription(CHANGES, {}).subscribe(into(told.urql).next).unsubscribe,
    ];
    const { id } = ok(await execute(app, MyIdDocument)).me;

    await expect
      .poll(async () => {
        await execute(app, GrantCreditsDocument, { input: { accountId: id, bucket: "PACK", credits: "1" } });
        return Math.min(...Object.values(told).map(({ length }) => length));
      })
      .toBeGreaterThanOrEqual(2);
    for (const leave of leaves) leave();
    overEvents.dispose();
    await overSocket.dispose();

    for (const answer of Object.values(told).flat()) expect(answer.data).toMatchObject({ balanceChanged: { account: { id } } });
    for (const [first, ...others] of [told.socket, told.events]) {
      expect(first).toMatchObject({ extensions: { cost: { maximum: 5_000 } } });
      for (const answer of others) expect(answer).not.toHaveProperty("extensions");
    }
  });

  it("reads why graphql-sse cannot have a single connection", async () => {
    const client = createSseClient({
      url: `${app.baseUrl}/graphql`,
      headers: authorization(app),
      singleConnection: true,
      retryAttempts: 0,
    });

    const error = await new Promise<unknown>((resolve) => {
      client.subscribe({ query: CHANGES }, { next: resolve, error: resolve, complete: () => resolve(null) });
    });
    client.dispose();
    const reserved = await fetch(`${app.baseUrl}/graphql`, { method: "PUT", headers: authorization(app) });
    const withToken = await post(app, { query: ME }, { "x-graphql-event-stream-token": "token" });

    expect(error).toMatchObject({ message: expect.stringMatching(/405: Method Not Allowed: set singleConnection to false/) });
    expect([reserved.status, withToken.status]).toEqual([405, 400]);
    for (const refused of [reserved, withToken]) {
      expect(((await refused.json()) as Answer).errors?.[0]?.message).toContain("set singleConnection to false");
    }
  });

  it("compiles @refetchable on Account: relay-compiler", async () => {
    const directory = await createEmptyDir();
    await mkdir(join(directory, "src"));
    await mkdir(join(directory, "out"));
    await writeFile(join(directory, "package.json"), '{ "name": "app" }');
    await writeFile(join(directory, "schema.graphql"), printSdl());
    const config = { src: "./src", language: "javascript", schema: "./schema.graphql", artifactDirectory: "./out" };
    await writeFile(join(directory, "relay.config.json"), JSON.stringify(config));
    const documents = `graphql\`fragment account on Account @refetchable(queryName: "accountRefetch")
      @argumentDefinitions(count: { type: "Int", defaultValue: 5 }, cursor: { type: "String" }) {
      handle apiKeys(first: $count, after: $cursor) @connection(key: "account_apiKeys") { edges { node { name } } } }\`;
      graphql\`query accountQuery { me { ...account } }\`;`;
    await writeFile(join(directory, "src", "account.js"), documents);

    await run(process.execPath, [createRequire(import.meta.url).resolve("relay-compiler/cli.js")], { cwd: directory });
    const refetch = await readFile(join(directory, "out", "accountRefetch.graphql.js"), "utf8");
    const [, text = ""] = /"text": (".*"),?$/m.exec(refetch) ?? [];
    await rm(directory, { recursive: true });
    const { id } = ok(await execute(app, MyIdDocument)).me;
    const answer = await executeText(app, { query: JSON.parse(text) as string, variables: { id, count: 1 } });

    expect(answer.errors).toBeUndefined();
    expect(answer.data).toMatchObject({ node: { id, handle: expect.any(String), apiKeys: { edges: [expect.anything()] } } });
  });

  it.each(["/graphql", "/schema.graphql"])(
    "makes types from the address of a public host and a key: @graphql-codegen/cli at %s",
    async (path) => {
      const schema = { [`${app.baseUrl}${path}`]: { headers: authorization(app) } };

      const [file] = (await generate({ silent: true, schema, generates: { "types.ts": { plugins: ["typescript"] } } }, false)) as {
        readonly content: string;
      }[];

      expect(file?.content).toContain("export type Account = Node & {");
    },
  );
});

/** What a client that sends digests sends: at first the digest alone, then with the text. */
function persisted(digest: string, more: object = {}): { readonly extensions: object } {
  return { extensions: { persistedQuery: { version: 1, sha256Hash: digest, ...more } } };
}

/** A document that no other test has registered. */
function newDocument(): { readonly query: string; readonly digest: string } {
  const query = `query D${randomUUID().replaceAll("-", "")} { me { id } }`;
  return { query, digest: createHash("sha256").update(query).digest("hex") };
}

describe("a document by its digest", () => {
  type Ask = (
    body: { readonly query?: string; readonly extensions: object },
    target?: TestApp,
  ) => Promise<Answer & { readonly status?: number }>;

  const byPost: Ask = async (body, target = app) => {
    const response = await fetch(`${target.baseUrl}/graphql`, {
      method: "POST",
      headers: { ...authorization(target), "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, ...((await response.json()) as Answer) };
  };
  const byGet: Ask = async ({ query, extensions }, target = app) => {
    const search = new URLSearchParams({ extensions: JSON.stringify(extensions), ...(query !== undefined && { query }) });
    const response = await fetch(`${target.baseUrl}/graphql?${search}`, { headers: authorization(target) });
    return { status: response.status, ...((await response.json()) as Answer) };
  };
  const byEvents: Ask = async (body, target = app) => {
    const headers = { ...authorization(target), "content-type": "application/json", accept: "text/event-stream" };
    const response = await fetch(`${target.baseUrl}/graphql`, { method: "POST", headers, body: JSON.stringify(body) });
    const [, data = ""] = /^data: (.*)$/m.exec(await response.text()) ?? [];
    return JSON.parse(data) as Answer;
  };
  // Its protocol wants a text, if an empty one.
  const bySocket: Ask = async ({ query = "", extensions }, target = app) => {
    const client = connect(target);
    const answer = await new Promise<Answer>((resolve) => {
      client.subscribe(
        { query, extensions: { ...extensions } },
        { next: (result) => resolve(result as Answer), error: (errors) => resolve({ errors } as Answer), complete: () => undefined },
      );
    });
    await client.dispose();
    return answer;
  };

  const WAYS: readonly (readonly [string, Ask])[] = [
    ["POST", byPost],
    ["GET", byGet],
    ["server-sent events", byEvents],
    ["a WebSocket", bySocket],
  ];

  it.each(WAYS)("is missed, registered and found over %s", async (way, ask) => {
    const { query, digest } = newDocument();

    const missed = await ask(persisted(digest));
    const registered = await ask({ query, ...persisted(digest) });
    const found = await ask(persisted(digest));
    const elsewhere = await byPost(persisted(digest));

    expect(missed.errors).toMatchObject([{ message: "PersistedQueryNotFound", extensions: { code: "PERSISTED_QUERY_NOT_FOUND" } }]);
    expect(missed.data ?? null).toBeNull();
    if (way === "POST" || way === "GET") expect(missed.status).toBe(200);
    for (const answer of [registered, found, elsewhere]) expect(answer.data).toEqual({ me: { id: expect.any(String) } });
  });

  it.each(WAYS)("is refused over %s when it has another digest, or the digest is none", async (_way, ask) => {
    const { query, digest } = newDocument();
    const refused = async (body: { readonly query?: string; readonly extensions: object }) =>
      (await ask(body)).errors?.map(({ extensions }) => [extensions.code, extensions.param]);

    expect(await refused({ query: `${query} `, ...persisted(digest) })).toEqual([["BAD_REQUEST", "extensions.persistedQuery.sha256Hash"]]);
    expect(await refused(persisted(digest.slice(1)))).toEqual([["BAD_REQUEST", "extensions.persistedQuery.sha256Hash"]]);
    expect(await refused(persisted(digest, { version: 2 }))).toEqual([["BAD_REQUEST", "extensions.persistedQuery.version"]]);
    expect(await refused({ extensions: { persistedQuery: digest } })).toEqual([["BAD_REQUEST", "extensions.persistedQuery"]]);
    expect(codes(await ask(persisted(digest)))).toEqual(["PERSISTED_QUERY_NOT_FOUND"]);
  });

  it("is not kept when it does not parse or is not valid", async () => {
    for (const query of ["{ me { id }", "{ nonsense }", `{ ${"a: me { id } ".repeat(400)} }`]) {
      const digest = createHash("sha256").update(query).digest("hex");

      expect(codes(await byPost({ query, ...persisted(digest) }))).toContain("BAD_REQUEST");
      expect(codes(await byPost(persisted(digest)))).toEqual(["PERSISTED_QUERY_NOT_FOUND"]);
    }
  });

  it("is one of the manifest where only those are answered, by its digest or by its text", async () => {
    const [listed, unlisted] = [newDocument(), newDocument()];
    const file = join(app.dataDir, "persisted.json");
    await writeFile(file, JSON.stringify({ [listed.digest]: listed.query }));
    const strict = await createTestApp({ upstream: app.upstream, config: { persistedDocuments: { file, isOnly: true } } });

    const answered = [
      await byPost(persisted(listed.digest), strict),
      await bySocket(persisted(listed.digest), strict),
      (await (await post(strict, { query: listed.query })).json()) as Answer,
    ];
    const refused = [
      await byPost(persisted(unlisted.digest), strict),
      await byPost({ query: unlisted.query, ...persisted(unlisted.digest) }, strict),
      await bySocket({ query: unlisted.query, extensions: {} }, strict),
    ];
    const status = (await post(strict, { query: unlisted.query })).status;
    await strict.close();

    for (const answer of answered) expect(answer.data).toEqual({ me: { id: expect.any(String) } });
    for (const { errors } of refused) {
      expect(errors).toMatchObject([
        { message: expect.stringContaining("its own list"), extensions: { code: "PERSISTED_QUERY_NOT_IN_LIST" } },
      ]);
    }
    expect(status).toBe(403);
  });
});

describe("the schema of a public host", () => {
  const schemaUrl = () => `${app.baseUrl}/schema.graphql`;
  const misspelt = { query: "{ mee { id } }" };

  it("is served to any key, as text and by introspection, and to no anonymous caller", async () => {
    const told = await fetch(schemaUrl(), { headers: authorization(app) });
    const text = await told.text();
    const etag = told.headers.get("etag") ?? "";
    const again = await fetch(schemaUrl(), { headers: { ...authorization(app), "if-none-match": etag } });
    const refused = await fetch(schemaUrl());
    const introspect = async (key: string | null) =>
      (await (await post({ ...app, key }, { query: getIntrospectionQuery() })).json()) as Answer;

    expect(text).toBe(printSdl());
    expect(told.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(told.headers.get("cache-control")).toBe("private, max-age=300");
    expect([again.status, await again.text()]).toEqual([304, ""]);
    expect([refused.status, await refused.json()]).toMatchObject([
      401,
      { error: { message: expect.stringContaining("Authorization: Bearer") } },
    ]);
    expect((await introspect(app.key)).data).toMatchObject({ __schema: { queryType: { name: "Query" } } });
    expect(new Set(codes(await introspect(null)))).toEqual(new Set(["BAD_REQUEST"]));
  });

  it("suggests corrections only to callers who may read it", async () => {
    const client = connect(app);
    const helped = [(await (await post(app, misspelt)).json()) as Answer, await subscribeWith(client, misspelt).next()];
    await client.dispose();
    const stranger = connect({ ...app, key: null });
    const others = [(await (await post({ ...app, key: null }, misspelt)).json()) as Answer, await subscribeWith(stranger, misspelt).next()];
    await stranger.dispose();

    for (const answer of helped) expect(answer?.errors?.[0]?.message).toMatch(/Did you mean "me"/);
    for (const answer of others) expect(answer?.errors?.[0]?.message).toBe('Cannot query field "mee" on type "Query".');
  });

  it("is read with GET alone, and never cached when the key stands in its address", async () => {
    const posted = await fetch(schemaUrl(), { method: "POST", headers: authorization(app) });
    const byUrl = await fetch(`${schemaUrl()}?key=${app.key}`);
    await byUrl.body?.cancel();

    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
    expect([byUrl.status, byUrl.headers.get("cache-control")]).toEqual([200, "private, no-store"]);
    await posted.body?.cancel();
  });
});

/** Replaces a function of a service until the returned function restores it. */
function standIn<Service extends object, Name extends keyof Service>(service: Service, name: Name, double: Service[Name]): () => void {
  const own = service[name];
  service[name] = double;
  return () => {
    service[name] = own;
  };
}
