/** GraphQL clients with their defaults, against an app that is configured as on a public host: it answers no introspection. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { ApolloClient, HttpLink, InMemoryCache } from "@apollo/client";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";
import { generate } from "@graphql-codegen/cli";
import { fetchExchange, Client as UrqlClient, type ClientOptions as UrqlOptions } from "@urql/core";
import { parse } from "graphql";
import { createClient as createSseClient } from "graphql-sse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { printSdl } from "../../src/graphql/schema.js";
import { type Answer, authorization, connect, execute, executeText, ok, post } from "../graphql/client.js";
import { GrantCreditsDocument, MyIdDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createEmptyDir } from "../support/database.js";

const run = promisify(execFile);

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp({ config: { graphql: { introspection: false, graphiql: false } } });
});

afterAll(async () => {
  await app.close();
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
      const generates = { "types.ts": { plugins: ["typescript"] } };
      const schema = { [`${app.baseUrl}${path}`]: { headers: authorization(app) } };

      const [file] = (await generate({ silent: true, cwd: import.meta.dirname, schema, generates }, false)) as {
        readonly content: string;
      }[];

      expect(file?.content).toContain("export type Account = Node & {");
    },
  );
});
