/** The errors for bad credentials, missing permissions and missing models, in every place that checks them. */

import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { createApiKeyText } from "../../src/lib/api-key-format.js";
import { databaseOf } from "../contract/support/matrix-callers.js";
import { execute } from "../graphql/client.js";
import { CreateApiKeyDocument, MyUsageDocument, UpdateApiKeyDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type Client, type CreatedKey, createClient, createKey, expectEnvelope } from "./client.js";

let app: TestApp;
let client: Client;
let now = new Date();
const INSTANT = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;

beforeAll(async () => {
  app = await createTestApp({ clock: { now: () => now } });
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

interface Told {
  readonly message: string;
  readonly challenge: string | null;
}

const revoke = (id: string) => client.request("DELETE", `/account/keys/${id}`);

/** By REST, in the header and in the URL, and by GraphQL over HTTP. */
async function askAll(key: string): Promise<Told[]> {
  const authorization = { Authorization: `Bearer ${key}` };
  const graphql = { method: "POST", headers: { ...authorization, "Content-Type": "application/json" }, body: '{"query":"{ __typename }"}' };
  const answers = [
    await fetch(`${app.baseUrl}/account/key`, { headers: authorization }),
    await fetch(`${app.baseUrl}/v1/models?key=${encodeURIComponent(key)}`),
    await fetch(`${app.baseUrl}/graphql`, graphql),
  ];
  return Promise.all(
    answers.map(async (answer) => {
      expect(answer.status).toBe(401);
      const body = (await answer.json()) as { error?: { message: string }; errors?: [{ message: string }] };
      return { message: body.error?.message ?? body.errors?.[0].message ?? "", challenge: answer.headers.get("www-authenticate") };
    }),
  );
}

/** The reason of the close. */
async function closedWith(key: string): Promise<{ code: number; reason: string }> {
  const socket = new WebSocket(app.wsUrl, "graphql-transport-ws");
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "connection_init", payload: { authorization: `Bearer ${key}` } }));
  const [code, reason] = (await once(socket, "close")) as [number, Buffer];
  return { code, reason: reason.toString() };
}

async function refusedRealtime(key: string): Promise<string> {
  const socket = new WebSocket(`${app.wsUrl.replace("/graphql", "/v1/realtime")}?model=acme/realtime&key=${encodeURIComponent(key)}`);
  const [, answer] = (await once(socket, "unexpected-response")) as [unknown, import("node:http").IncomingMessage];
  const body = Buffer.concat(await answer.toArray()).toString();
  expect([answer.statusCode, answer.headers["www-authenticate"]]).toEqual([401, expect.stringContaining("error_description=")]);
  return (JSON.parse(body) as { error: { message: string } }).error.message;
}

describe("a connection that is kept alive", () => {
  it("takes the caller of each request from its own key", async () => {
    const [first, second] = [await createKey(app, { name: "first" }), await createKey(app, { name: "second" })];
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    const ask = async (key: string | null) => {
      const headers = key === null ? {} : { Authorization: `Bearer ${key}` };
      const sent = request(`${app.baseUrl}/account/key`, { agent, headers }).end();
      const [answer] = (await once(sent, "response")) as [IncomingMessage];
      ports.add(sent.socket?.localPort);
      const { name, error } = JSON.parse(await text(answer)) as { name?: string; error?: { code: string } };
      return name ?? error?.code;
    };

    const told = [await ask(first.key), await ask(second.key), await ask(first.key), await ask(first.key), await ask(null)];
    told.push(await ask(`${first.key.slice(0, -1)}-`), await ask(first.key));
    await revoke(first.id);
    told.push(await ask(first.key), await ask(second.key));
    agent.destroy();

    expect(told).toEqual(["first", "second", "first", "first", "UNAUTHORIZED", "UNAUTHORIZED", "first", "UNAUTHORIZED", "second"]);
    expect(ports.size).toBe(1);
  });
});

describe("a key that is not good", () => {
  const MISTYPED = `${"sk_"}${"a".repeat(43)}`;

  it.each<[string, string, RegExp]>([
    ["mistyped", MISTYPED, /^The API key is mistyped: its checksum does not fit\.$/],
    ["cut off", MISTYPED.slice(0, -3), /^The API key is not whole: one that begins with sk_ has 46 characters, and this has 43\.$/],
    [
      "spelt with what no key has",
      `${MISTYPED.slice(0, -1)}-`,
      /^The API key is mistyped: after sk_ there are letters and digits alone\.$/,
    ],
    ["unknown", createApiKeyText("sk"), /^The API key is unknown to this gateway\.$/],
    ["OpenAI's", "sk-proj-abcdefghijklmnopqrstuvwxyz", /^The API key looks like a key of another service: Sluice keys begin with sk_/],
    ["another service's with our prefix", "sk_live_abcdefghijklmnopqrstuvwx", /^The API key looks like a key of another service/],
    ["Google's", "AIzaSyabcdefghijklmnopqrstuvwxyz", /^The API key looks like a key of another service/],
    ["in quotation marks", `"${MISTYPED}"`, /^The API key stands in quotation marks: send it without them\.$/],
    ["a variable's name", "$SLUICE_KEY", /^The API key is the name of a variable that was not filled in\.$/],
    ["a run token that is made up", "ag_abc", /^The run token is not valid: /],
  ])("that is %s is refused with the reason everywhere, and never repeated", async (_what, key, message) => {
    const told = await askAll(key);

    expect(told.map((each) => each.message)).toEqual(told.map(() => expect.stringMatching(message)));
    for (const { challenge, message: said } of told) {
      expect(challenge).toBe(`Bearer error="invalid_token", error_description="${said}"`);
      if (key.length > 12) expect(said).not.toContain(key.slice(3, 12));
    }
    const { code, reason } = await closedWith(key);
    expect([code, told[0]?.message.startsWith(reason.replace(/\.\.\.$/, ""))]).toEqual([4403, true]);
    expect(await refusedRealtime(key)).toMatch(message);
  });

  it("that was revoked says so, with when; at once, although it was known before", async () => {
    const { id, key } = await createKey(app);
    expect((await client.get("/account/key", { key })).status).toBe(200);
    await revoke(id);

    const revoked = new RegExp(`^The API key was revoked at ${INSTANT}\\.$`);
    for (const { message } of await askAll(key)) expect(message).toMatch(revoked);
    expect((await closedWith(key)).reason).toMatch(revoked);
    expect(await refusedRealtime(key)).toMatch(revoked);
  });

  it("that ended with the key that had made it says so; one that was revoked before says that", async () => {
    const parent = await createKey(app);
    // A key makes none that holds `keys`.
    await databaseOf(app).prisma.apiKey.update({ where: { id: parent.id }, data: { permissions: ["keys"] } });
    const makeChild = async () => (await client.post("/account/keys", { name: "child" }, { key: parent.key })).json<CreatedKey>();
    const [first, second] = [await makeChild(), await makeChild()];
    await revoke(first.id);
    now = new Date(now.getTime() + 1_000);
    await revoke(parent.id);

    expect((await askAll(first.key))[0]?.message).toMatch(/^The API key was revoked at /);
    expect((await askAll(second.key))[0]?.message).toMatch(
      new RegExp(`^The API key ended at ${INSTANT}, when the key that it was made with was revoked\\.$`),
    );
    expect((await closedWith(second.key)).reason).toMatch(/^The API key ended at .* was revoked\.$/);
  });

  it("that expired says so, with when, until its time is extended", async () => {
    const { id, key } = await createKey(app, { expiresIn: 60 });
    expect((await client.get("/account/key", { key })).status).toBe(200);
    now = new Date(now.getTime() + 61_000);

    for (const { message } of await askAll(key)) expect(message).toMatch(new RegExp(`^The API key expired at ${INSTANT}\\.$`));
    await client.request("PATCH", `/account/keys/${id}`, { body: { expiresIn: 60 } });
    expect((await client.get("/account/key", { key })).status).toBe(200);
  });

  it("closes its socket with the reason when it is revoked", async () => {
    const { id, key } = await createKey(app);
    const socket = new WebSocket(app.wsUrl, "graphql-transport-ws");
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "connection_init", payload: { authorization: `Bearer ${key}` } }));
    await once(socket, "message");
    const closed = once(socket, "close") as Promise<[number, Buffer]>;
    await revoke(id);

    const [code, reason] = await closed;
    expect([code, reason.toString()]).toEqual([4403, expect.stringMatching(/^The API key was revoked at /)]);
  });

  it("in an invalid header gets an error with the header's form", async () => {
    const ask = async (Authorization: string) => {
      const answer = await client.get("/account/key", { key: null, headers: { Authorization } });
      expectEnvelope(answer, 401, "UNAUTHORIZED");
      return answer.json<{ error: { message: string } }>().error.message;
    };

    expect(await ask("Bearer ")).toMatch(/^The Authorization header holds no key after the word Bearer: is the variable/);
    expect(await ask(app.key)).toMatch(/^The Authorization header lacks the word Bearer before the key/);
    expect(await ask("Basic abc def")).toBe("The Authorization header must read: Bearer <API key>.");
    expect(await ask(`Bearer Bearer ${app.key}`)).toMatch(/the word Bearer and one key/);
  });
});

describe("a missing permission", () => {
  it("is named as it is granted, on both faces", async () => {
    const { key } = await createKey(app, { accountPermissions: ["balance"] });
    const words = /^This key was made without accountPermissions: \["usage"\]: .*POST \/account\/keys/;
    const rest = await client.get("/account/usage", { key });
    const { errors } = await execute({ ...app, key }, MyUsageDocument, { first: 1 });
    const keys = await client.get("/account/keys", { key });

    expectEnvelope(rest, 403, "FORBIDDEN");
    expect(rest.json<{ error: { message: string } }>().error.message).toMatch(words);
    expect(errors?.[0]?.message).toMatch(words);
    expect(keys.json<{ error: { message: string } }>().error.message).toMatch(/signed-in user created with accountPermissions: \["keys"\]/);
  });
});

describe("allowedModels", () => {
  interface Refused {
    readonly error: { readonly message: string; readonly param: string };
  }
  const closest = /^There is no model "acme\/chatt"\. The closest are: acme\/chat, /;

  it("answers 400 with the closest models to an unknown one, when a key is made and when it is changed, on both faces", async () => {
    const { id } = await createKey(app, { allowedModels: ["chat", "acme/free"] });
    const wrong = { allowedModels: ["acme/free", "acme/chatt"] };
    const answers = [
      await client.post("/account/keys", { name: "x", ...wrong }),
      await client.request("PATCH", `/account/keys/${id}`, { body: wrong }),
    ];
    for (const answer of answers) {
      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.json<Refused>().error).toMatchObject({ param: "allowedModels.1", message: expect.stringMatching(closest) });
    }
    for (const { errors } of [
      await execute(app, CreateApiKeyDocument, { input: { name: "x", ...wrong } }),
      await execute(app, UpdateApiKeyDocument, { input: { id, ...wrong } }),
    ]) {
      expect(errors).toMatchObject([
        { message: expect.stringMatching(closest), extensions: { code: "BAD_REQUEST", param: "allowedModels.1" } },
      ]);
    }
    const { data } = (await client.get("/account/keys")).json<{ data: { id: string; allowedModels: string[] }[] }>();
    expect(data.find((key) => key.id === id)?.allowedModels).toEqual(["chat", "acme/free"]);
  });

  it("may keep a model that no longer exists", async () => {
    const { id, key } = await createKey(app, { allowedModels: ["acme/chat"] });
    await databaseOf(app).prisma.apiKey.update({ where: { id }, data: { allowedModels: ["acme/gone"] } });

    expect((await client.get("/account/key", { key })).status).toBe(200);
    const changed = await client.request("PATCH", `/account/keys/${id}`, { body: { allowedModels: ["acme/gone", "acme/free"] } });

    expect(changed).toMatchObject({ status: 200 });
    expect(changed.json()).toMatchObject({ allowedModels: ["acme/gone", "acme/free"] });
  });
});
