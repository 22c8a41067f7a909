/** Sessions and sign-in below the faces: tokens, passwords, limits, time. */
import { createHmac } from "node:crypto";
import { verifyPassword } from "better-auth/crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { RequestContext } from "../../../src/context.js";
import { AppError } from "../../../src/errors.js";
import { PASSWORD_COST } from "../../../src/limits.js";
import { chooseHandle, handleInput } from "../../../src/services/accounts/profiles.js";
import { SessionCookie } from "../../../src/services/sessions/csrf-tokens.js";
import { SESSION_SECONDS, SESSIONS_PER_ACCOUNT_MAX } from "../../../src/services/sessions/limits.js";
import { Passwords } from "../../../src/services/sessions/passwords.js";
import { SessionDirectory } from "../../../src/services/sessions/session-directory.js";
import { signInInput, signUpInput } from "../../../src/services/sessions/sign-in.js";
import type { Database } from "../../../src/store/database.js";
import { createMemoryEvents } from "../../../src/store/events.js";
import { createTestApp, type TestApp } from "../../support/app.js";
import { createMovableClock, type MovableClock } from "../../support/clock.js";
import { silentLog } from "../../support/database.js";
import { nobody, type Person, signIn, signUp } from "../../support/sign-in.js";

const SECRET = Buffer.alloc(32, 7);
const DAY_SECONDS = 24 * 60 * 60;

let app: TestApp;
let clock: MovableClock;
beforeAll(async () => {
  clock = createMovableClock();
  app = await createTestApp({ clock });
});
afterAll(() => app.close());

function database(): Database {
  return app.database;
}

function tokenOf({ cookie }: Person): string {
  return cookie.slice("sluice_session=".length);
}

function contextOf({ accountId, sessionId }: Person): RequestContext {
  return { ...nobody(), caller: { kind: "session", accountId, isOperator: false, sessionId } };
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "no error",
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  );
}

describe("A session", () => {
  it("is stored without the browser's token", async () => {
    const person = await signUp(app);

    const row = await database().prisma.session.findUniqueOrThrow({ where: { id: person.sessionId } });

    expect(tokenOf(person)).toMatch(/^[A-Za-z0-9]{32}$/);
    expect(row.token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(JSON.stringify(row)).not.toContain(tokenOf(person));
    expect(await app.services.sessions.find(row.token)).toBeNull();
  });

  it("remembers where it began", async () => {
    const input = signUpInput.parse({ email: "traveller@example.com", password: "correct horse battery" });
    const ctx = { ...nobody(), clientAddress: "203.0.113.7" };

    const { sessionId } = await app.services.signIn.signUp(ctx, input, { userAgent: `Browser/1.0 \n\u00e9${"x".repeat(500)}` });

    const row = await database().prisma.session.findUniqueOrThrow({ where: { id: sessionId } });
    expect(row.ipAddress).toBe("203.0.113.7");
    expect(row.userAgent).toBe(`Browser/1.0 ${"x".repeat(388)}`);
  });

  it("expires after thirty days without use, and lasts while it is used", async () => {
    const { accountId } = await signUp(app);
    // Each look-up by a process that has none of them in its cache.
    const find = (token: string) => new SessionDirectory(database(), SECRET, clock, createMemoryEvents(silentLog)).find(token);
    const [idle, busy] = [crypto.randomUUID(), crypto.randomUUID()];
    const hash = (token: string) => createHmac("sha256", SECRET).update(token).digest("base64url");
    const expiresAt = new Date(clock.now().getTime() + SESSION_SECONDS * 1000);
    await database().prisma.session.createMany({
      data: [idle, busy].map((id) => ({ id, accountId, token: hash(`token of ${id}`), expiresAt })),
    });

    clock.advance(29 * DAY_SECONDS);
    expect(await find(`token of ${busy}`)).toMatchObject({ sessionId: busy, accountId });
    clock.advance(DAY_SECONDS);

    expect(await find(`token of ${idle}`)).toBeNull();
    expect(await find(`token of ${busy}`)).toMatchObject({ sessionId: busy });
    const renewed = await database().prisma.session.findUniqueOrThrow({ where: { id: busy } });
    expect(renewed.expiresAt.getTime() - clock.now().getTime()).toBe(SESSION_SECONDS * 1000);
  });

  it("has expired for every later request, even when a look-up from before is under way", async () => {
    const { accountId } = await signUp(app);
    const id = crypto.randomUUID();
    const token = createHmac("sha256", SECRET).update("held").digest("base64url");
    const { session } = database().prisma;
    await session.create({ data: { id, accountId, token, expiresAt: new Date(clock.now().getTime() + SESSION_SECONDS * 1000) } });
    let hasRead: () => void = () => undefined;
    let release: () => void = () => undefined;
    const read = new Promise<void>((resolve) => {
      hasRead = resolve;
    });
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    // The database has answered, and its answer is on its way for a while.
    const findUnique = async (args: Parameters<typeof session.findUnique>[0]) => {
      const row = await session.findUnique(args);
      hasRead();
      if (row) await released;
      return row;
    };
    const slow = { prisma: { session: { findUnique } } } as unknown as Database;
    const events = createMemoryEvents(silentLog);
    const directory = new SessionDirectory(slow, SECRET, clock, events);

    const before = directory.find("held");
    await read;
    await session.delete({ where: { id } });
    events.publish("session-changed", { accountId, sessionId: id });
    const after = await directory.find("held");
    release();

    expect(after).toBeNull();
    await before;
    expect(await directory.find("held")).toBeNull();
  });

  it("is deleted from the database after it has expired", async () => {
    const person = await signUp(app);
    clock.advance(SESSION_SECONDS);

    await signUp(app);

    expect(await database().prisma.session.count({ where: { id: person.sessionId } })).toBe(0);
  });

  it("is evicted when there are too many", async () => {
    const person = await signUp(app);
    const { accountId } = person;
    const old = Array.from({ length: SESSIONS_PER_ACCOUNT_MAX - 1 }, (_, index) => ({
      id: crypto.randomUUID(),
      accountId,
      token: `filler-${accountId}-${index}`,
      expiresAt: new Date(clock.now().getTime() + 1_000_000),
      updatedAt: new Date(0),
    }));
    await database().prisma.session.createMany({ data: old });

    const another = await signIn(app, person);

    const left = await app.services.sessions.all(contextOf(another));
    expect(left).toHaveLength(SESSIONS_PER_ACCOUNT_MAX);
    expect(left.map(({ id }) => id)).toEqual(expect.arrayContaining([person.sessionId, another.sessionId]));
  });
});

describe("Passwords", () => {
  it("are hashed as the library hashes them", async () => {
    const passwords = new Passwords(PASSWORD_COST);
    const password = "pa\u0301ssw\u00f6rd \u2460";

    const hash = await passwords.hash(password);

    expect(hash).toMatch(/^[0-9a-f]{32}:[0-9a-f]{128}$/);
    expect(await verifyPassword({ hash, password })).toBe(true);
    expect(await passwords.verify("p\u00e1ssw\u00f6rd 1", hash)).toBe(true);
    expect(await passwords.verify("passw\u00f6rd 1", hash)).toBe(false);
  });

  it("wait for each other, so many and no more", async () => {
    const passwords = new Passwords(1024, 1, 2);

    const codes = await Promise.all([1, 2, 3, 4].map(() => codeOf(passwords.hash("password"))));

    expect(codes).toEqual(["no error", "no error", "no error", "SERVICE_UNAVAILABLE"]);
    expect(await codeOf(passwords.hash("password"))).toBe("no error");
  });

  it("have 8 to 128 characters", () => {
    const isTaken = (password: string) => signUpInput.safeParse({ email: "a@example.com", password }).success;

    expect([7, 8, 128, 129].map((length) => isTaken("p".repeat(length)))).toEqual([false, true, true, false]);
    expect(signInInput.safeParse({ email: "a@example.com", password: "p".repeat(129) }).success).toBe(false);
  });
});

describe("E-mail addresses", () => {
  it("are the same in any case, and of ASCII only", () => {
    const emailOf = (email: string) => signUpInput.safeParse({ email, password: "correct horse" }).data?.email ?? null;

    expect(emailOf(" Ada.Lovelace@Example.COM ")).toBe("ada.lovelace@example.com");
    // KELVIN SIGN and dotless i would become k and i; the others only look like it.
    for (const email of [
      "\u212aate@example.com",
      "ad\u0131@example.com",
      "\u0430da@example.com",
      "ada@ex\u00e4mple.com",
      "ada",
      "a@b",
      "",
    ]) {
      expect(emailOf(email)).toBeNull();
    }
    expect(emailOf(`${"a".repeat(64)}@${"b".repeat(59)}.${"c".repeat(63)}.${"d".repeat(61)}.com`)).toHaveLength(254);
    expect(emailOf(`${"a".repeat(64)}@${"b".repeat(60)}.${"c".repeat(63)}.${"d".repeat(61)}.com`)).toBeNull();
  });

  it("belong to one account", async () => {
    await signUp(app, { email: "only.one@example.com" });

    expect(await codeOf(signUp(app, { email: "Only.One@Example.com" }))).toBe("CONFLICT");
  });

  it("belong to one account when two sign up at once", async () => {
    const codes = await Promise.all([1, 2, 3].map(() => codeOf(signUp(app, { email: "at.once@example.com" }))));

    expect(codes.sort()).toEqual(["CONFLICT", "CONFLICT", "no error"]);
  });
});

describe("Signing in", () => {
  it("says the same of an unknown address, a wrong password and an account without one", async () => {
    const person = await signUp(app);
    await database().prisma.account.create({ data: { id: crypto.randomUUID(), handle: "no-password", email: "none@example.com" } });
    const attempts = [
      { email: person.email, password: "not the password" },
      { email: "stranger@example.com", password: person.password },
      { email: "none@example.com", password: person.password },
    ];

    const errors = await Promise.all(
      attempts.map((attempt) => signIn(app, attempt).catch((error: AppError) => `${error.code} ${error.message}`)),
    );

    expect(new Set(errors)).toEqual(new Set(["UNAUTHORIZED The e-mail address or the password is wrong."]));
  });

  it("takes the time of a password check for an unknown address", async () => {
    const hash = vi.spyOn(Passwords.prototype, "hash");
    await codeOf(signIn(app, { email: "stranger@example.com", password: "whatever it is" }));
    const derived = hash.mock.calls;
    hash.mockRestore();

    expect(derived).toEqual([["whatever it is"]]);
  });

  it("ends the browser's earlier session", async () => {
    const before = await signUp(app);
    const input = signInInput.parse({ email: before.email, password: before.password });

    const { sessionId, cookies } = await app.services.signIn.signIn(contextOf(before), input, { userAgent: undefined });

    expect(sessionId).not.toBe(before.sessionId);
    expect(cookies).toEqual([expect.stringMatching(/^sluice_session=[A-Za-z0-9]{32}; Max-Age=34560000; Path=\/; HttpOnly; SameSite=Lax$/)]);
    expect(await app.services.sessions.find(tokenOf(before))).toBeNull();
  });

  it("gives a new account the free tier and a handle after its address", async () => {
    const person = await signUp(app, { email: "Grace.Hopper+navy@example.com", name: " Grace " });

    const account = await database().prisma.account.findUniqueOrThrow({ where: { id: person.accountId } });

    expect(account).toMatchObject({ handle: "grace-hopper", name: "Grace", tier: "free", isEmailVerified: false, isOperator: false });
  });
});

describe("The number of attempts", () => {
  let limited: TestApp;
  beforeAll(async () => {
    const signInPace = { addressTurnMs: 10, emailTurnMs: 10, waitingPerAddressMax: 2 };
    limited = await createTestApp({ config: { signInAttemptsPerMinute: 3, signInPace } });
  });
  afterAll(() => limited.close());

  const attempt = (email: string, clientAddress: string) =>
    limited.services.signIn.signIn({ ...nobody(), clientAddress }, signInInput.parse({ email, password: "wrong password" }), {
      userAgent: "",
    });

  it("is slowed down for an address, and refused while too many of its attempts wait", async () => {
    const names = Array.from({ length: 20 }, (_, n) => `flood-${n}@example.com`);
    const codes = await Promise.all(names.map((email) => codeOf(attempt(email, "203.0.113.1"))));

    expect(new Set(codes)).toEqual(new Set(["UNAUTHORIZED", "RATE_LIMITED"]));
    expect(await codeOf(attempt("late@example.com", "203.0.113.1"))).toBe("UNAUTHORIZED");
  });

  it("admits the right password, wherever wrong ones come from", async () => {
    const person = await signUp(limited);
    const hosts = Array.from({ length: 20 }, (_, n) => n + 20);
    const codes = await Promise.all(hosts.map((host) => codeOf(attempt(person.email.toUpperCase(), `203.0.113.${host}`))));
    expect(new Set(codes)).toEqual(new Set(["UNAUTHORIZED"]));

    expect(await signIn(limited, person)).toMatchObject({ accountId: person.accountId });
  });

  it("admits the right password after many mistyped ones", async () => {
    const person = await signUp(limited);
    const codes = [];
    for (let n = 0; n < 8; n += 1) codes.push(await codeOf(attempt(person.email, nobody().clientAddress)));
    expect(new Set(codes)).toEqual(new Set(["UNAUTHORIZED"]));

    expect(await signIn(limited, person)).toMatchObject({ accountId: person.accountId });
  });

  it("is limited for sign-ups of an address", async () => {
    const at = { ...nobody(), clientAddress: "203.0.113.99" };
    const codes = [];
    for (const name of ["w", "x", "y", "z"]) {
      const input = signUpInput.parse({ email: `${name}@example.net`, password: "correct horse" });
      codes.push(await codeOf(limited.services.signIn.signUp(at, input, { userAgent: "" })));
    }

    expect(codes).toEqual(["no error", "no error", "no error", "RATE_LIMITED"]);
  });

  it("is limited for the current password when it is changed", async () => {
    const person = await signUp(limited);
    const change = { currentPassword: "not the password", newPassword: "another password" };
    const codes = [];
    for (let n = 0; n < 4; n += 1)
      codes.push(await codeOf(limited.services.signIn.changePassword(contextOf(person), change, { userAgent: "" })));

    expect(codes).toEqual(["BAD_REQUEST", "BAD_REQUEST", "BAD_REQUEST", "RATE_LIMITED"]);
  });
});

describe("A handle", () => {
  const free = async () => false;

  it.each([
    ["ada.lovelace@example.com", "ada-lovelace"],
    ["Ada_L+spam@example.com", "ada-l"],
    ["-Octo--Cat-", "octo-cat"],
    ["Zo\u00eb", "zoe"],
    ["a".repeat(60), "a".repeat(39)],
    ["\u0416\u0416@example.com", expect.stringMatching(/^account-\d{6}$/)],
    ["owner@example.com", expect.stringMatching(/^owner-\d{6}$/)],
    ["Community", expect.stringMatching(/^community-\d{6}$/)],
  ])("of %s is allowed", async (source, expected) => {
    const handle = await chooseHandle(source, free);

    expect(handle).toEqual(expected);
    expect(handleInput.safeParse(handle).success).toBe(true);
  });

  it("that is taken gets a number, and fits with it", async () => {
    const handle = await chooseHandle("a".repeat(39), async (asked) => !asked.includes("-"));

    expect(handle).toMatch(/^a{32}-\d{6}$/);
  });

  it("is of letters, digits and dashes, and not reserved", () => {
    const refused = ["", "-a", "a_b", "a.b", "a b", "\u00e4", "a".repeat(40), "owner", "Sandbox", "community", "api"];

    expect(refused.filter((handle) => handleInput.safeParse(handle).success)).toEqual([]);
    expect(["a", "0", "a-", "Ada", "a".repeat(39)].map((handle) => handleInput.safeParse(handle).data)).toEqual([
      "a",
      "0",
      "a-",
      "ada",
      "a".repeat(39),
    ]);
  });
});

describe("The cookie", () => {
  const token = "t".repeat(32);
  const secure = new SessionCookie(() => ["https://api.example.com", "https://auth.example.com"]);
  const plain = new SessionCookie(() => ["http://localhost:4000", "http://localhost:4000"]);

  it("can be set by this host alone over https", () => {
    expect(secure.create(token)).toBe(`__Host-sluice_session=${token}; Max-Age=34560000; Path=/; HttpOnly; SameSite=Lax; Secure`);
    expect(secure.read(`sluice_session=${token}`)).toBeNull();
    expect(secure.read(`__Host-sluice_session=${token}`)).toBe(token);
    expect(plain.read(`__Host-sluice_session=${token}`)).toBeNull();
    expect(plain.clear()).toBe("sluice_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax");
  });

  it("counts once", () => {
    expect(plain.read(`a=b; sluice_session=${token}; c=d`)).toBe(token);
    expect(plain.read(`sluice_session=${token}; sluice_session=${token}`)).toBeNull();
    expect(plain.read(`xsluice_session=${token}`)).toBeNull();
    expect(plain.read(`sluice_session=${token.slice(1)}`)).toBeNull();
    expect(plain.read(`sluice_session=${token}%00`)).toBeNull();
    expect(plain.read("sluice_session=")).toBeNull();
    expect(plain.read(undefined)).toBeNull();
  });

  const from = (method: string, headers: Record<string, string>) =>
    secure.tokenOf({ method, headers: { host: "api.example.com", cookie: `__Host-sluice_session=${token}`, ...headers } }) !== null;

  it.each<[string, string, Record<string, string>, boolean]>([
    ["POST", "our own page", { "sec-fetch-site": "same-origin" }, true],
    ["POST", "our own page in an older browser", { origin: "https://api.example.com" }, true],
    ["POST", "the page of the authorization host", { origin: "https://auth.example.com" }, true],
    ["POST", "another site", { "sec-fetch-site": "cross-site" }, false],
    ["POST", "another site that sends our origin along", { "sec-fetch-site": "cross-site", origin: "https://api.example.com" }, false],
    ["POST", "another host of the domain", { "sec-fetch-site": "same-site" }, false],
    ["POST", "the address bar", { "sec-fetch-site": "none" }, false],
    ["POST", "another site in an older browser", { origin: "https://evil.example" }, false],
    ["POST", "our name without encryption", { origin: "http://auth.example.com" }, false],
    ["POST", "a frame without an origin", { origin: "null" }, false],
    ["POST", "who knows where", {}, false],
    ["DELETE", "who knows where", {}, false],
    ["GET", "our own page", { "sec-fetch-site": "same-origin" }, true],
    ["GET", "the address bar", { "sec-fetch-site": "none" }, true],
    ["GET", "a link or a picture of another site", { "sec-fetch-site": "cross-site" }, false],
    ["GET", "a script of another site in an older browser", { origin: "https://evil.example" }, false],
    ["GET", "an older browser", {}, true],
  ])("of a %s from %s", (method, _where, headers, counts) => {
    expect(from(method, headers)).toBe(counts);
  });

  it("counts at the host where people sign in, where that is one of its own", () => {
    const apart = new SessionCookie(() => ["https://auth.example.com"], "auth.example.com");
    const at = (host: string, headers: Record<string, string> = {}) =>
      apart.tokenOf({ method: "POST", headers: { host, cookie: `__Host-sluice_session=${token}`, ...headers } }) !== null;

    const isOwnPage = { "sec-fetch-site": "same-origin" };
    expect(["auth.example.com", "AUTH.example.com:443", "api.example.com", ""].map((host) => at(host, isOwnPage))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(["auth", "api"].map((name) => at("auth.example.com", { origin: `https://${name}.example.com` }))).toEqual([true, false]);
  });

  it("of a WebSocket counts with an origin of ours", () => {
    const upgrade = (headers: Record<string, string>) =>
      secure.tokenOfUpgrade({ headers: { host: "api.example.com", cookie: `__Host-sluice_session=${token}`, ...headers } });

    expect(upgrade({ origin: "https://api.example.com" })).toBe(token);
    expect(upgrade({ origin: "https://evil.example" })).toBeNull();
    expect(upgrade({})).toBeNull();
  });
});
