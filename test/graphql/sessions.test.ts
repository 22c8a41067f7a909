/** Signing in and sessions over GraphQL: the cookie on HTTP, what a WebSocket may do, and what ends with a session. */
import { createClient as createSocketClient } from "graphql-ws";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { createKey } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { cookieOf, type Person, signedIn, signIn, signUp } from "../support/sign-in.js";
import { type Answer, codes, type Document, execute, field, type Live, post, subscribeWith, type Target } from "./client.js";

const SIGN_UP = "mutation ($input: SignUpInput!) { signUp(input: $input) { accountId sessionId } }";
const SIGN_IN = "mutation ($input: SignInInput!) { signIn(input: $input) { accountId sessionId } }";
const SIGN_OUT = "mutation ($input: SignOutInput!) { signOut(input: $input) { ended } }";
const CHANGE_PASSWORD = "mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { sessionId } }";
const REVOKE = "mutation ($input: RevokeSessionInput!) { revokeSession(input: $input) { id } }";
const REVOKE_OTHERS = "mutation ($input: RevokeOtherSessionsInput!) { revokeOtherSessions(input: $input) { ended clientMutationId } }";
const UPDATE = "mutation ($input: UpdateProfileInput!) { updateProfile(input: $input) { account { handle name image } } }";
const SESSIONS = "{ me { restId email sessions { id isCurrent userAgent ipAddress createdAt expiresAt } } }";
const LIVE: Document = { query: "subscription { usageRecorded { id } }" };

let app: TestApp;
let nobody: Target;
beforeAll(async () => {
  app = await createTestApp();
  nobody = { baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: null };
});
afterAll(() => app.close());

interface Sent {
  readonly answer: Answer;
  readonly cookies: readonly string[];
}

async function send(query: string, input: object | null, headers: Record<string, string> = {}): Promise<Sent> {
  const response = await post(nobody, { query, ...(input && { variables: { input } }) }, headers);
  return { answer: (await response.json()) as Answer, cookies: response.headers.getSetCookie() };
}

function sendAs(person: Pick<Person, "cookie">, query: string, input: object | null = null): Promise<Sent> {
  return send(query, input, signedIn(person));
}

async function isSignedIn(person: Pick<Person, "cookie">): Promise<boolean> {
  return (await sendAs(person, "{ me { id } }")).answer.data?.me !== null;
}

/** A client of a page of ours, or of what says to be one. */
function connectAs({ cookie }: Pick<Person, "cookie">, origin: string | null) {
  class BrowserSocket extends WebSocket {
    constructor(address: string, protocols: string[]) {
      super(address, protocols, { headers: { Cookie: cookie, ...(origin !== null && { Origin: origin }) } });
    }
  }
  return createSocketClient({ url: app.wsUrl, webSocketImpl: BrowserSocket, retryAttempts: 0, lazy: true });
}

async function askSocket(person: Pick<Person, "cookie">, origin: string | null, document: Document): Promise<Answer | null> {
  const client = connectAs(person, origin);
  const live = subscribeWith(client, document);
  const answer = await live.next();
  await client.dispose();
  return answer;
}

/** Resolves when the subscription hears what it is there for: an answer to the account. */
async function isListening(live: Live, person: Person): Promise<void> {
  const heard = live.next();
  const chat =
    'mutation { createChatCompletion(input: { model: "sandbox/text", messages: [{ role: USER, content: "Hi" }] }) { __typename } }';
  let isHeard = false;
  void heard.then(() => {
    isHeard = true;
  });
  // The first may be recorded before the subscription is there.
  while (!isHeard) {
    expect((await sendAs(person, chat)).answer.errors).toBeUndefined();
    await Promise.race([heard, new Promise((resolve) => setTimeout(resolve, 100))]);
  }
}

describe("signUp and signIn", () => {
  it("set the cookie with the answer", async () => {
    const email = "graph@example.com";
    const up = await send(SIGN_UP, { email, password: "correct horse battery", name: "Graph" });
    const signedUp = { cookie: cookieOf(up.cookies) };
    const into = await send(SIGN_IN, { email: "GRAPH@example.com", password: "correct horse battery" });
    const signedInAgain = { cookie: cookieOf(into.cookies) };

    const seen = await sendAs(signedInAgain, SESSIONS);

    expect(up.cookies).toEqual([expect.stringMatching(/^sluice_session=[A-Za-z0-9]{32}; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Lax$/)]);
    expect(JSON.stringify([up.answer, into.answer, seen.answer])).not.toContain(signedInAgain.cookie.slice("sluice_session=".length));
    expect(field(seen.answer, "me")).toEqual({
      restId: field(up.answer, "signUp").accountId,
      email,
      sessions: [into, up].map(({ answer }, index) => ({
        id: field(answer, index === 0 ? "signIn" : "signUp").sessionId,
        isCurrent: index === 0,
        userAgent: expect.any(String),
        ipAddress: "127.0.0.1",
        createdAt: expect.any(String),
        expiresAt: expect.any(String),
      })),
    });
    expect(await isSignedIn(signedUp)).toBe(true);
  });

  it("refuse what is wrong, in the words of the other face", async () => {
    const person = await signUp(app);
    const wrong = await send(SIGN_IN, { email: person.email, password: "not the password" });
    const taken = await send(SIGN_UP, { email: person.email, password: "correct horse battery" });
    const short = await send(SIGN_UP, { email: "short@example.org", password: "1234567" });

    expect([wrong, taken, short].map(({ answer }) => codes(answer))).toEqual([["UNAUTHORIZED"], ["CONFLICT"], ["BAD_REQUEST"]]);
    expect(short.answer.errors?.[0]).toMatchObject({ extensions: { param: "password" } });
    expect([wrong, taken, short].flatMap(({ cookies }) => cookies)).toEqual([]);
  });

  it("are tried once in an operation", async () => {
    const input = '{ email: "a@example.com", password: "password" }';
    const { answer } = await send(`mutation { a: signIn(input: ${input}) { sessionId } b: signIn(input: ${input}) { sessionId } }`, null);
    const mixed = await send(`mutation { signIn(input: ${input}) { sessionId } signUp(input: ${input}) { sessionId } }`, null);

    for (const refused of [answer, mixed.answer]) {
      expect(refused.data).toBeUndefined();
      expect(refused.errors?.[0]?.message).toContain("only one of");
    }
  });

  it("need HTTP", async () => {
    const person = await signUp(app);
    const input = { email: person.email, password: person.password };

    const answer = await askSocket({ cookie: "" }, null, { query: SIGN_IN, variables: { input } });

    expect(codes(answer ?? {})).toEqual(["BAD_REQUEST"]);
    expect(answer?.errors?.[0]?.message).toContain("over HTTP");
  });

  it("are limited, and say for how long", async () => {
    const limited = await createTestApp({ config: { signInAttemptsPerMinute: 1 } });
    try {
      const target = { baseUrl: limited.baseUrl, wsUrl: limited.wsUrl, key: null };
      const input = { email: "a@example.com", password: "password" };
      await execute(target, SIGN_IN, { input });

      const answer = await execute(target, SIGN_IN, { input });

      expect(codes(answer)).toEqual(["RATE_LIMITED"]);
      expect(answer.errors?.[0]?.extensions.retryAfterSeconds).toBeGreaterThan(0);
    } finally {
      await limited.close();
    }
  });
});

describe("A signed-in browser", () => {
  it("signs out here, and everywhere", async () => {
    const here = await signUp(app);
    const there = await signIn(app, here);

    const left = await sendAs(here, SIGN_OUT, {});
    const afterOne = await Promise.all([here, there].map(isSignedIn));
    const leftAll = await sendAs(there, SIGN_OUT, { everywhere: true });

    expect(field(left.answer, "signOut")).toEqual({ ended: 1 });
    expect(left.cookies).toEqual(["sluice_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax"]);
    expect(afterOne).toEqual([false, true]);
    expect(field(leftAll.answer, "signOut")).toEqual({ ended: 1 });
    expect(await isSignedIn(there)).toBe(false);
  });

  it("revokes one session, and the others", async () => {
    const first = await signUp(app);
    const [second, third, fourth] = [await signIn(app, first), await signIn(app, first), await signIn(app, first)];
    const stranger = await signUp(app);

    const one = await sendAs(first, REVOKE, { id: second.sessionId });
    const twice = await sendAs(first, REVOKE, { id: second.sessionId });
    const foreign = await sendAs(first, REVOKE, { id: stranger.sessionId });
    const others = await sendAs(third, REVOKE_OTHERS, { clientMutationId: "mine" });

    expect(field(one.answer, "revokeSession")).toEqual({ id: second.sessionId });
    expect([codes(twice.answer), codes(foreign.answer)]).toEqual([["NOT_FOUND"], ["NOT_FOUND"]]);
    expect(field(others.answer, "revokeOtherSessions")).toEqual({ ended: 2, clientMutationId: "mine" });
    expect(await Promise.all([first, second, third, fourth, stranger].map(isSignedIn))).toEqual([false, false, true, false, true]);
  });

  it("changes the password and goes on in a new session", async () => {
    const person = await signUp(app);
    const other = await signIn(app, person);
    const input = { currentPassword: person.password, newPassword: "another password" };

    const wrong = await sendAs(person, CHANGE_PASSWORD, { ...input, currentPassword: "not the password" });
    const changed = await sendAs(person, CHANGE_PASSWORD, input);

    expect(wrong.answer.errors?.[0]).toMatchObject({ extensions: { code: "BAD_REQUEST", param: "currentPassword" } });
    expect(await Promise.all([person, other].map(isSignedIn))).toEqual([false, false]);
    expect(await isSignedIn({ cookie: cookieOf(changed.cookies) })).toBe(true);
    await expect(signIn(app, person)).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  });

  it("changes its profile", async () => {
    const person = await signUp(app, { name: "Ada" });
    const handle = `graph-${Date.now()}`;

    const { answer } = await sendAs(person, UPDATE, { handle, image: "https://example.com/a.png" });
    const reserved = await sendAs(person, UPDATE, { handle: "sandbox" });

    expect(field(answer, "updateProfile")).toEqual({ account: { handle, name: "Ada", image: "https://example.com/a.png" } });
    expect(codes(reserved.answer)).toEqual(["BAD_REQUEST"]);
  });

  it("is nobody for requests of other sites", async () => {
    const { cookie } = await signUp(app);
    const foreign: Record<string, string>[] = [{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.example" }, {}];

    for (const headers of foreign) {
      const { answer } = await send(SESSIONS, null, { cookie, ...headers });
      expect(codes(answer)).toEqual(["UNAUTHORIZED"]);
    }
  });
});

describe("Sessions", () => {
  const operations: [string, object | null][] = [
    [SIGN_OUT, {}],
    [CHANGE_PASSWORD, { currentPassword: "password", newPassword: "password" }],
    [REVOKE, { id: "00000000-0000-7000-8000-000000000000" }],
    [REVOKE_OTHERS, {}],
    [UPDATE, { name: "Key" }],
    ["{ me { sessions { id } } }", null],
  ];

  it.each(operations)("are managed by no key, and by nobody: %s", async (query, input) => {
    const secret = await createKey(app, { accountPermissions: ["profile", "balance", "usage", "keys"] });
    const publishable = await createKey(app, { type: "publishable" });

    for (const key of [app.key, secret.key, publishable.key]) {
      const { answer } = await send(query, input, { authorization: `Bearer ${key}` });
      expect(codes(answer)).toEqual(["FORBIDDEN"]);
    }
    const { answer } = await send(query, input);
    expect(codes(answer)).toEqual(["UNAUTHORIZED"]);
  });
});

describe("A WebSocket", () => {
  const ME: Document = { query: "{ me { restId } }" };

  it("of our own page is the account's", async () => {
    const person = await signUp(app);

    const answer = await askSocket(person, app.baseUrl, ME);

    expect(answer?.data).toEqual({ me: { restId: person.accountId } });
  });

  it.each([
    ["of another site", "https://evil.example"],
    ["of who knows where", null],
  ])("%s is nobody's", async (_where, origin) => {
    const person = await signUp(app);

    expect(codes((await askSocket(person, origin, ME)) ?? {})).toEqual(["UNAUTHORIZED"]);
  });

  it("is closed when its session ends", async () => {
    const person = await signUp(app);
    const client = connectAs(person, app.baseUrl);
    const live = subscribeWith(client, LIVE);
    await isListening(live, person);

    await sendAs(person, SIGN_OUT, {});

    const rest = await live.rest();
    expect(codes(rest.at(-1) ?? {})).toEqual(["4403"]);
    await client.dispose();
  });
});

it("ends an event stream with the session that it was asked in", async () => {
  const person = await signUp(app);
  const other = await signIn(app, person);
  const response = await post(nobody, LIVE, { accept: "text/event-stream", ...signedIn(person) });

  await sendAs(other, REVOKE, { id: person.sessionId });

  const text = await response.text();
  expect(text).toContain('"code":"UNAUTHORIZED"');
  expect(text).toContain("event: complete");
});
