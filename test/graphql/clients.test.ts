/** What clients of all kinds do with their defaults, against one app that is configured as on a public host: strangers may not ask for the schema. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { inTime } from "../support/eventually.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { json } from "../support/upstream-replies.js";
import { type Answer, codes, connect, field, post, subscribeSse, subscribeWith } from "./client.js";

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

/** The parts of an answer as they came, each with what it adds. */
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
      expect(field(first, "me")).not.toHaveProperty("balance");
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

  it("has at most 200 of them, and costs what it costs", async () => {
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

  it("does not tell what went wrong inside of the gateway, in no part", async () => {
    const secret = "a detail of the database";
    const restore = standIn(app.services.lowBalance, "get", () => Promise.reject(new Error(secret)));
    const query = "{ me { id ... @defer { lowBalance { threshold } } } }";
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

  it("is left with everything that was still to come", async () => {
    const left: Promise<void>[] = [];
    const restore = standIn(app.services.lowBalance, "get", ({ signal }) => {
      const gone = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      left.push(gone);
      return gone.then(() => Promise.reject(new Error("left")));
    });
    const query = "{ me { id ... @defer { lowBalance { threshold } } } }";
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
    await inTime(Promise.all(left), "what was to come was not given up");
    await client.dispose();
    restore();
  });

  it("has the receipt of what was charged, and is kept whole for an Idempotency-Key", async () => {
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

    expect(field(parts[0], "createChatCompletion").completion?.choices?.[0]?.message?.content).toBe("Paid.");
    expect(receipt).toMatchObject({ path: ["createChatCompletion"], data: { receipt: { cost: expect.stringMatching(/^0\.0/) } } });
    expect(field(first, "createChatCompletion").receipt?.cost).toEqual(expect.stringMatching(/^0\.0/));
    expect(replayed).toMatchObject({ data: first?.data, extensions: { idempotentReplay: true, cost: { maximum: 5_000 } } });
    expect(await rows()).toBe(before + 2);
  });
});

/** Puts a function in the place of a service's own until it is told to put that back. */
function standIn<Service extends object, Name extends keyof Service>(service: Service, name: Name, double: Service[Name]): () => void {
  const own = service[name];
  service[name] = double;
  return () => {
    service[name] = own;
  };
}
