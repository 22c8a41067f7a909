/** What clients of all kinds do with their defaults, against one app that is configured as on a public host: strangers may not ask for the schema. */
import { createHash, randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { getIntrospectionQuery } from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { printSdl } from "../../src/graphql/schema.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { inTime } from "../support/eventually.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { json } from "../support/upstream-replies.js";
import { type Answer, authorization, codes, connect, post, subscribeSse, subscribeWith } from "./client.js";

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
  it("is sent as multipart/mixed, as events and on a WebSocket, and whole to clients that ask for JSON", async () => {
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

  it.each([
    ["deferSpec=20220824", true],
    ['deferSpec="20220824"', true],
    ["incrementalSpec=v0.2", false],
    ["deferSpec=20300101", false],
  ])("in multipart/mixed;%s is sent in parts: %s", async (format, isInParts) => {
    const accept = `multipart/mixed;${format},application/graphql-response+json,application/json;q=0.9`;

    const response = await post(app, { query: DEFERRED }, { accept });

    if (isInParts) {
      expect((await partsOf(response))[0]?.hasNext).toBe(true);
      return;
    }
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ data: { me: { balance: { available: expect.any(String) } } } });
  });

  it("is whole for a client that takes other parts alone", async () => {
    const response = await post(app, { query: DEFERRED }, { accept: "multipart/mixed;incrementalSpec=v0.2" });

    const [only] = await partsOf(response);
    expect(only).toMatchObject({ data: { me: { balance: { available: expect.any(String) } } } });
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

  it.each(WAYS)("is refused over %s when its digest differs, or is missing", async (_way, ask) => {
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
