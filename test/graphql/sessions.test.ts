/** Signing in and sessions over GraphQL: the cookie on HTTP, what a WebSocket may do, and what ends with a session. */
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { createClient as createSocketClient } from "graphql-ws";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { databaseOf } from "../e2e/money.js";
import {
  ChangePasswordDocument,
  ChatDocument,
  MyIdDocument,
  MySessionsDocument,
  MySessionsPageDocument,
  type MySessionsPageQueryVariables,
  NodesByIdsDocument,
  RevokeOtherSessionsDocument,
  RevokeSessionDocument,
  SessionNodeDocument,
  SessionsOfAccountDocument,
  SignInDocument,
  SignOutDocument,
  SignUpDocument,
  UpdateProfileDocument,
  UsageRecordedDocument,
} from "../operations/generated/graphql.js";
import { createKey } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { cookieOf, type Person, signedIn, signIn, signUp } from "../support/sign-in.js";
import { type Answer, codes, execute, executeText, type Given, type Live, ok, post, subscribeWith, type Target, textOf } from "./client.js";

let app: TestApp;
let nobody: Target;
beforeAll(async () => {
  app = await createTestApp();
  nobody = { baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: null };
});
afterAll(() => app.close());

interface Sent<Data> {
  readonly answer: Answer<Data>;
  readonly cookies: readonly string[];
}

async function send<Data, Variables extends Record<string, unknown>>(
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  headers: Readonly<Record<string, string>> = {},
): Promise<Sent<Data>> {
  const response = await post(nobody, { query: textOf(document), variables }, headers);
  return { answer: (await response.json()) as Answer<Data>, cookies: response.headers.getSetCookie() };
}

function sendAs<Data, Variables extends Record<string, unknown>>(
  person: Pick<Person, "cookie">,
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): Promise<Sent<Data>> {
  return send(document, variables, signedIn(person));
}

async function isSignedIn(person: Pick<Person, "cookie">): Promise<boolean> {
  return (await sendAs(person, MyIdDocument, {})).answer.data?.me !== null;
}

/** A client of a page of ours, or of a page that claims to be one. */
function connectAs({ cookie }: Pick<Person, "cookie">, origin: string | null) {
  class BrowserSocket extends WebSocket {
    constructor(address: string, protocols: string[]) {
      super(address, protocols, { headers: { Cookie: cookie, ...(origin !== null && { Origin: origin }) } });
    }
  }
  return createSocketClient({ url: app.wsUrl, webSocketImpl: BrowserSocket, retryAttempts: 0, lazy: true });
}

async function askSocket<Data, Variables>(
  person: Pick<Person, "cookie">,
  origin: string | null,
  document: TypedDocumentNode<Data, Variables>,
  ...given: Given<Variables>
): Promise<Answer<Data> | null> {
  const client = connectAs(person, origin);
  const live = subscribeWith(client, document, ...given);
  const answer = await live.next();
  await client.dispose();
  return answer;
}

/** Resolves with the first answer that shows the account. */
async function isListening(live: Live<unknown>, person: Person): Promise<void> {
  const heard = live.next();
  const input = { model: "sandbox/text", messages: [{ role: "USER", content: "Hi" }] } as const;
  let isHeard = false;
  void heard.then(() => {
    isHeard = true;
  });
  // The first may be recorded before the subscription is there.
  while (!isHeard) {
    expect((await sendAs(person, ChatDocument, { input })).answer.errors).toBeUndefined();
    await Promise.race([heard, new Promise((resolve) => setTimeout(resolve, 100))]);
  }
}

describe("signUp and signIn", () => {
  it("set the cookie with the answer, and answer the session", async () => {
    const email = "graph@example.com";
    const up = await send(SignUpDocument, { input: { email, password: "correct horse battery", name: "Graph" } });
    const signedUp = { cookie: cookieOf(up.cookies) };
    const into = await send(SignInDocument, { input: { email: "GRAPH@example.com", password: "correct horse battery" } });
    const signedInAgain = { cookie: cookieOf(into.cookies) };
    const [{ signUp: first }, { signIn: second }] = [ok(up.answer), ok(into.answer)];

    const seen = await sendAs(signedInAgain, MySessionsDocument, {});

    expect(up.cookies).toEqual([expect.stringMatching(/^sluice_session=[A-Za-z0-9]{32}; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Lax$/)]);
    expect(JSON.stringify([up.answer, into.answer, seen.answer])).not.toContain(signedInAgain.cookie.slice("sluice_session=".length));
    expect([first.session.isCurrent, second.session.isCurrent]).toEqual([true, true]);
    expect(first.session).toMatchObject({ userAgent: expect.any(String), ipAddress: "127.0.0.1" });
    expect(ok(seen.answer).me).toEqual({
      restId: first.accountId,
      email,
      isEmailVerified: false,
      sessions: { nodes: [second.session, { ...first.session, isCurrent: false }] },
    });
    expect(await isSignedIn(signedUp)).toBe(true);
  });

  it("refuse wrong input, in the words of the other face", async () => {
    const person = await signUp(app);
    const wrong = await send(SignInDocument, { input: { email: person.email, password: "not the password" } });
    const taken = await send(SignUpDocument, { input: { email: person.email, password: "correct horse battery" } });
    const short = await send(SignUpDocument, { input: { email: "short@example.org", password: "1234567" } });

    expect([wrong, taken, short].map(({ answer }) => codes(answer))).toEqual([["UNAUTHORIZED"], ["CONFLICT"], ["BAD_REQUEST"]]);
    expect(short.answer.errors?.[0]).toMatchObject({ extensions: { param: "password" } });
    expect([wrong, taken, short].flatMap(({ cookies }) => cookies)).toEqual([]);
  });

  it("are tried once in an operation", async () => {
    const input = '{ email: "a@example.com", password: "password" }';
    const twice = await executeText(nobody, {
      query: `mutation { a: signIn(input: ${input}) { accountId } b: signIn(input: ${input}) { accountId } }`,
    });
    const mixed = await executeText(nobody, {
      query: `mutation { signIn(input: ${input}) { accountId } signUp(input: ${input}) { accountId } }`,
    });

    for (const refused of [twice, mixed]) {
      expect(refused.data).toBeUndefined();
      expect(refused.errors?.[0]?.message).toContain("only one of");
    }
  });

  it("need HTTP", async () => {
    const { email, password } = await signUp(app);

    const answer = await askSocket({ cookie: "" }, null, SignInDocument, { input: { email, password } });

    expect(codes(answer ?? {})).toEqual(["BAD_REQUEST"]);
    expect(answer?.errors?.[0]?.message).toContain("over HTTP");
  });

  it("are limited when no more may wait, and say for how long", async () => {
    const signInPace = { addressTurnMs: 60_000, emailTurnMs: 60_000, waitingPerAddressMax: 0 };
    const limited = await createTestApp({ config: { signInAttemptsPerMinute: 1, signInPace } });
    try {
      const target = { baseUrl: limited.baseUrl, key: null };
      const input = { email: "a@example.com", password: "password" };
      expect(codes(await execute(target, SignInDocument, { input }))).toEqual(["UNAUTHORIZED"]);
      expect(codes(await execute(target, SignInDocument, { input }))).toEqual(["UNAUTHORIZED"]);

      const answer = await execute(target, SignInDocument, { input });

      expect(codes(answer)).toEqual(["RATE_LIMITED"]);
      expect(answer.errors?.[0]?.extensions.retryAfterSeconds).toBeGreaterThan(0);
    } finally {
      await limited.close();
    }
  });
});

describe("a signed-in browser", () => {
  it("signs out here, and everywhere", async () => {
    const here = await signUp(app);
    const there = await signIn(app, here);

    const left = await sendAs(here, SignOutDocument, { input: {} });
    const afterOne = await Promise.all([here, there].map(isSignedIn));
    const leftAll = await sendAs(there, SignOutDocument, { input: { isEverywhere: true } });

    expect(ok(left.answer).signOut).toEqual({ ended: 1, sessions: [{ restId: here.sessionId }] });
    expect(left.cookies).toEqual(["sluice_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax"]);
    expect(afterOne).toEqual([false, true]);
    expect(ok(leftAll.answer).signOut).toEqual({ ended: 1, sessions: [{ restId: there.sessionId }] });
    expect(await isSignedIn(there)).toBe(false);
  });

  it("revokes one session, and the others", async () => {
    const first = await signUp(app);
    const [second, third, fourth] = [await signIn(app, first), await signIn(app, first), await signIn(app, first)];
    const stranger = await signUp(app);
    const revoke = (id: string) => sendAs(first, RevokeSessionDocument, { input: { id } });

    const one = await revoke(second.sessionId);
    const [twice, foreign, wrong] = [
      await revoke(second.sessionId),
      await revoke(stranger.sessionId),
      await revoke(toGlobalId("ApiKey", "1")),
    ];
    const others = await sendAs(third, RevokeOtherSessionsDocument, { input: { clientMutationId: "mine" } });

    const revoked = { id: toGlobalId("Session", second.sessionId), restId: second.sessionId, isCurrent: false };
    expect(ok(one.answer).revokeSession).toEqual({ session: revoked });
    expect([twice, foreign, wrong].map(({ answer }) => codes(answer))).toEqual([["NOT_FOUND"], ["NOT_FOUND"], ["BAD_REQUEST"]]);
    expect(ok(others.answer).revokeOtherSessions).toEqual({
      ended: 2,
      sessions: [fourth, first].map(({ sessionId: restId }) => ({ restId })),
      clientMutationId: "mine",
    });
    expect(await Promise.all([first, second, third, fourth, stranger].map(isSignedIn))).toEqual([false, false, true, false, true]);
  });

  it("revokes a session by its global id", async () => {
    const person = await signUp(app);
    const other = await signIn(app, person);

    const { answer } = await sendAs(person, RevokeSessionDocument, { input: { id: toGlobalId("Session", other.sessionId) } });

    expect(ok(answer).revokeSession.session.restId).toBe(other.sessionId);
    expect(await isSignedIn(other)).toBe(false);
  });

  it("pages through its sessions, from either end", async () => {
    const oldest = await signUp(app);
    const [middle, newest] = [await signIn(app, oldest), await signIn(app, oldest)];
    const page = async (args: MySessionsPageQueryVariables) => ok((await sendAs(oldest, MySessionsPageDocument, args)).answer).me.sessions;

    const first = await page({ first: 2 });
    const rest = await page({ first: 2, after: first?.pageInfo.endCursor ?? null });
    const end = await page({ last: 1 });

    const idsOf = (...people: readonly Person[]) => people.map(({ sessionId: restId }) => ({ restId }));
    expect(first).toMatchObject({ totalCount: 3, nodes: idsOf(newest, middle), pageInfo: { hasNextPage: true, hasPreviousPage: false } });
    expect(rest).toMatchObject({ totalCount: 3, nodes: idsOf(oldest), pageInfo: { hasNextPage: false, hasPreviousPage: true } });
    expect(end).toMatchObject({ nodes: idsOf(oldest), pageInfo: { hasPreviousPage: true } });
    const foreign = await sendAs(oldest, MySessionsPageDocument, { first: 1, after: "hand-made" });
    expect(foreign.answer.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "after" });
  });

  it("finds a session of its own again, and no other account's", async () => {
    const [person, stranger] = [await signUp(app), await signUp(app)];
    const [own, foreign] = [person, stranger].map(({ sessionId }) => toGlobalId("Session", sessionId));

    const found = await sendAs(person, SessionNodeDocument, { id: own ?? "" });
    const both = await sendAs(person, NodesByIdsDocument, { ids: [foreign ?? "", own ?? "", toGlobalId("Session", "no-id")] });

    expect(ok(found.answer).node).toMatchObject({ id: own, restId: person.sessionId, isCurrent: true });
    expect(ok(both.answer).nodes).toEqual([null, { __typename: "Session", id: own }, null]);
  });

  it("sees its own sessions only, even an operator's", async () => {
    const [operator, other] = [await signUp(app), await signUp(app)];
    await databaseOf(app).prisma.account.update({ where: { id: operator.accountId }, data: { isOperator: true } });

    const { answer } = await sendAs(await signIn(app, operator), SessionsOfAccountDocument, { id: other.accountId });

    expect(codes(answer)).toEqual(["FORBIDDEN"]);
    expect(answer.data?.account).toEqual({ restId: other.accountId, sessions: null });
  });

  it("changes the password and continues in a new session", async () => {
    const person = await signUp(app);
    const other = await signIn(app, person);
    const input = { currentPassword: person.password, newPassword: "another password" };

    const wrong = await sendAs(person, ChangePasswordDocument, { input: { ...input, currentPassword: "not the password" } });
    const changed = await sendAs(person, ChangePasswordDocument, { input });

    expect(wrong.answer.errors?.[0]).toMatchObject({ extensions: { code: "BAD_REQUEST", param: "currentPassword" } });
    expect(ok(changed.answer).changePassword).toEqual({
      accountId: person.accountId,
      session: { restId: expect.not.stringContaining(person.sessionId), isCurrent: true },
    });
    expect(await Promise.all([person, other].map(isSignedIn))).toEqual([false, false]);
    expect(await isSignedIn({ cookie: cookieOf(changed.cookies) })).toBe(true);
    await expect(signIn(app, person)).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  });

  it("changes its profile", async () => {
    const person = await signUp(app, { name: "Ada" });
    const handle = `graph-${Date.now()}`;

    const { answer } = await sendAs(person, UpdateProfileDocument, { input: { handle, image: "https://example.com/a.png" } });
    const reserved = await sendAs(person, UpdateProfileDocument, { input: { handle: "sandbox" } });

    expect(ok(answer).updateProfile).toEqual({ account: { handle, name: "Ada", image: "https://example.com/a.png" } });
    expect(codes(reserved.answer)).toEqual(["BAD_REQUEST"]);
  });

  it("is anonymous for requests of other sites", async () => {
    const { cookie } = await signUp(app);
    const foreign: Record<string, string>[] = [{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.example" }, {}];

    for (const headers of foreign) {
      const { answer } = await send(MySessionsDocument, {}, { cookie, ...headers });
      expect(codes(answer)).toEqual(["UNAUTHORIZED"]);
    }
  });
});

describe("sessions", () => {
  const id = "00000000-0000-7000-8000-000000000000";
  const operations: [string, (headers: Record<string, string>) => Promise<Sent<unknown>>][] = [
    ["signOut", (headers) => send(SignOutDocument, { input: {} }, headers)],
    [
      "changePassword",
      (headers) => send(ChangePasswordDocument, { input: { currentPassword: "password", newPassword: "password" } }, headers),
    ],
    ["revokeSession", (headers) => send(RevokeSessionDocument, { input: { id } }, headers)],
    ["revokeOtherSessions", (headers) => send(RevokeOtherSessionsDocument, { input: {} }, headers)],
    ["updateProfile", (headers) => send(UpdateProfileDocument, { input: { name: "Key" } }, headers)],
    ["me { sessions }", (headers) => send(MySessionsPageDocument, {}, headers)],
    ["node", (headers) => send(SessionNodeDocument, { id: toGlobalId("Session", id) }, headers)],
  ];

  it.each(operations)("are managed by sessions alone: %s", async (_name, ask) => {
    const secret = await createKey(app, { accountPermissions: ["profile", "balance", "usage", "keys"] });
    const publishable = await createKey(app, { type: "publishable" });

    for (const key of [app.key, secret.key, publishable.key]) {
      const { answer } = await ask({ authorization: `Bearer ${key}` });
      expect(codes(answer)).toEqual(["FORBIDDEN"]);
    }
    const { answer } = await ask({});
    expect(codes(answer)).toEqual(["UNAUTHORIZED"]);
  });
});

describe("a WebSocket", () => {
  it("of our own page is the account's", async () => {
    const person = await signUp(app);

    const answer = await askSocket(person, app.baseUrl, MyIdDocument);

    expect(ok(answer).me.restId).toBe(person.accountId);
  });

  it.each([
    ["of another site", "https://evil.example"],
    ["of who knows where", null],
  ])("%s is anonymous", async (_where, origin) => {
    const person = await signUp(app);

    expect(codes((await askSocket(person, origin, MyIdDocument)) ?? {})).toEqual(["UNAUTHORIZED"]);
  });

  it("is closed when its session ends", async () => {
    const person = await signUp(app);
    const client = connectAs(person, app.baseUrl);
    const live = subscribeWith(client, UsageRecordedDocument);
    await isListening(live, person);

    await sendAs(person, SignOutDocument, { input: {} });

    const rest = await live.rest();
    expect(codes(rest.at(-1) ?? {})).toEqual(["4403"]);
    await client.dispose();
  });
});

it("ends an event stream with the session that it began in", async () => {
  const person = await signUp(app);
  const other = await signIn(app, person);
  const response = await post(nobody, { query: textOf(UsageRecordedDocument) }, { accept: "text/event-stream", ...signedIn(person) });

  await sendAs(other, RevokeSessionDocument, { input: { id: person.sessionId } });

  const text = await response.text();
  expect(text).toContain('"code":"UNAUTHORIZED"');
  expect(text).toContain("event: complete");
});
