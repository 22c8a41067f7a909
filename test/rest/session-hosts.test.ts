/**
 * Where people sign in at a host of its own (docs/operating.md, "Hosts of their own"): a session counts there alone, and nothing that a
 * model made, or that a stranger uploaded, is answered there.
 */

import { type IncomingHttpHeaders, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { recordRoutes } from "../../src/rest/router.js";
import { textOf } from "../graphql/client.js";
import { SignInDocument, SignUpDocument, WhoAmIDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type Person, signedIn, signUp } from "../support/sign-in.js";

const [GATEWAY, LOGIN, MEDIA] = ["gateway.example", "login.example", "media.example"];
const ME = { query: textOf(WhoAmIDocument) };
/** Accounts, and the pages on which people sign in and decide. */
const ANSWERED_WHERE_PEOPLE_SIGN_IN =
  /^\/(?:account|sign-in|sign-up|sign-out|home|sessions|password|set-password|authorize|device|integrations|checkout|receipt|api\/auth|api\/device|api\/oauth|\.well-known)(?:\/|$)/;

let app: TestApp;
let person: Person;

beforeAll(async () => {
  const config = { baseUrl: `http://${GATEWAY}`, authUrl: `http://${LOGIN}`, mediaUrl: `http://${MEDIA}` };
  app = await createTestApp({ config });
  person = await signUp(app);
});
afterAll(() => app.close());

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** `fetch` does not let a program choose the Host header. */
function ask(host: string, path: string, { method = "GET", headers = {}, body }: Asked = {}): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { "Content-Type": "application/json" };
    const sent = request(app.baseUrl + path, { method, headers: { Host: host, ...type, ...headers } }, async (res) => {
      const chunks: Buffer[] = [];
      for await (const chunk of res) chunks.push(chunk as Buffer);
      resolve({ status: res.statusCode ?? 0, headers: res.headers, text: Buffer.concat(chunks).toString() });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

function signInAt(host: string): Promise<Answered> {
  const variables = { input: { email: person.email, password: person.password } };
  return ask(host, "/graphql", { method: "POST", body: JSON.stringify({ query: textOf(SignInDocument), variables }) });
}

describe("a session", () => {
  it("counts where people sign in", async () => {
    for (const path of ["/account/profile", "/api/account/profile", "/account/sessions"]) {
      expect([path, (await ask(LOGIN, path, { headers: signedIn(person) })).status]).toEqual([path, 200]);
    }
    const me = await ask(LOGIN, "/graphql", { method: "POST", headers: signedIn(person), body: JSON.stringify(ME) });

    expect(JSON.parse(me.text)).toMatchObject({ data: { me: { handle: expect.any(String) } } });
    expect((await ask(LOGIN, "/device", { headers: signedIn(person) })).status).toBe(200);
  });

  it.each([GATEWAY, "127.0.0.1", ""])("counts nowhere else: %s", async (host) => {
    for (const path of ["/account/profile", "/text/hello?model=sandbox/text"]) {
      expect([path, (await ask(host, path, { headers: signedIn(person) })).status]).toEqual([path, 401]);
    }
    const me = await ask(host, "/graphql", { method: "POST", headers: signedIn(person), body: JSON.stringify(ME) });

    expect(JSON.parse(me.text).errors[0].extensions.code).toBe("UNAUTHORIZED");
  });

  it("opens a WebSocket where people sign in, for the pages there alone", async () => {
    const whoami = async (host: string, origin: string) => {
      const socket = new WebSocket(app.wsUrl, "graphql-transport-ws", { headers: { Host: host, Cookie: person.cookie, Origin: origin } });
      const next = () => new Promise<string>((resolve) => socket.once("message", (data) => resolve(String(data))));
      await new Promise((resolve) => socket.once("open", resolve));
      socket.send(JSON.stringify({ type: "connection_init" }));
      await next();
      socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: ME }));
      const answer = await next();
      socket.terminate();
      return answer.includes('"handle"') ? "signed in" : "nobody";
    };

    expect(await whoami(LOGIN, `http://${LOGIN}`)).toBe("signed in");
    expect(await whoami(LOGIN, `http://${GATEWAY}`)).toBe("nobody");
    expect(await whoami(GATEWAY, `http://${GATEWAY}`)).toBe("nobody");
    expect(await whoami(GATEWAY, `http://${LOGIN}`)).toBe("nobody");
  });

  it("is ignored on a page of another host of ours, even from an older browser", async () => {
    const status = async (origin: string) =>
      (await ask(LOGIN, "/account/profile", { headers: { Cookie: person.cookie, Origin: origin } })).status;

    expect(await status(`http://${LOGIN}`)).toBe(200);
    expect(await status(`http://${GATEWAY}`)).toBe(401);
    expect(await status(`http://${MEDIA}`)).toBe(401);
  });

  it("begins and ends there, and other hosts answer with its address", async () => {
    const there = await signInAt(LOGIN);
    const elsewhere = await signInAt(GATEWAY);

    expect(there.headers["set-cookie"]).toEqual([expect.stringContaining("sluice_session=")]);
    expect(elsewhere.headers).not.toHaveProperty("set-cookie");
    expect(JSON.parse(elsewhere.text).errors[0]).toMatchObject({
      message: `Sessions are not accepted at this host. Use http://${LOGIN} instead.`,
      extensions: { code: "BAD_REQUEST" },
    });
  });
});

describe("a page of another origin", () => {
  let newcomers = 0;
  const account = () => {
    newcomers += 1;
    const input = { email: `newcomer-${newcomers}@example.com`, password: "correct horse battery" };
    return JSON.stringify({ query: textOf(SignUpDocument), variables: { input } });
  };
  const from = (headers: Readonly<Record<string, string>>, body: string) => ask(LOGIN, "/graphql", { method: "POST", headers, body });
  const accounts = () => app.database.prisma.account.count();

  it.each([
    ["of another site", { Origin: "http://evil.test:4260", "Sec-Fetch-Site": "cross-site" }],
    ["of the same site", { Origin: `http://${GATEWAY}`, "Sec-Fetch-Site": "same-site" }],
    ["in an older browser", { Origin: "http://evil.test:4260" }],
    ["with an opaque origin", { Origin: "null" }],
    ["that hides its origin", { "Sec-Fetch-Site": "cross-site" }],
  ])("cannot create accounts or sign in: %s", async (_where, headers) => {
    const before = await accounts();
    const variables = { input: { email: person.email, password: person.password } };

    for (const body of [account(), JSON.stringify({ query: textOf(SignInDocument), variables })]) {
      const refused = await from(headers, body);
      expect(refused.headers).not.toHaveProperty("set-cookie");
      expect(JSON.parse(refused.text).errors[0]).toMatchObject({
        message: `Sign-up, sign-in and sign-out are only accepted from pages of this gateway. Send the user to http://${LOGIN} instead.`,
        extensions: { code: "FORBIDDEN" },
      });
    }
    expect(await accounts()).toBe(before);
  });

  it("does not affect the gateway's own pages, nor programs, which send no origin", async () => {
    for (const headers of [{}, { Origin: `http://${LOGIN}`, "Sec-Fetch-Site": "same-origin" }, { Origin: `http://${LOGIN}` }]) {
      expect((await from(headers, account())).headers["set-cookie"]).toEqual([expect.stringContaining("sluice_session=")]);
    }
  });

  it("has its forms refused, even with a token", async () => {
    for (const headers of [{ "Sec-Fetch-Site": "cross-site" }, { Origin: "http://evil.test:4260" }]) {
      const type = { "Content-Type": "application/x-www-form-urlencoded" };
      const refused = await ask(LOGIN, "/sign-up", { method: "POST", headers: { ...headers, ...type }, body: "form_token=x" });
      expect([refused.status, refused.text.includes("This form was sent from another site.")]).toEqual([403, true]);
    }
  });
});

describe("the host where people sign in", () => {
  it("answers only accounts, GraphQL and the pages for it", async () => {
    const answered = new Set<string>();
    const headers = { Authorization: `Bearer ${app.key}` };
    for (const { path, methods } of recordRoutes()) {
      // HEAD says no more than GET, and not why.
      for (const method of Object.keys(methods).filter((name) => name !== "HEAD")) {
        const { text } = await ask(LOGIN, path.replace(/[:*]\w+/g, "x"), { method, headers });
        if (!text.includes("No such path.")) answered.add(path);
      }
    }

    expect([...answered].filter((path) => !ANSWERED_WHERE_PEOPLE_SIGN_IN.test(path))).toEqual([]);
    expect(answered).toContain("/account/profile");
    expect((await ask(LOGIN, "/text/hello?model=sandbox/text", { headers })).status).toBe(404);
  });

  it.each([
    [LOGIN, "/v1/realtime", 404],
    [LOGIN, "/v1/responses", 404],
    [MEDIA, "/v1/realtime", 404],
    [MEDIA, "/graphql", 404],
    [LOGIN, "/graphql", 101],
  ])("opens no socket of a model, nor any where media are: %s%s", async (host, path, status) => {
    const headers = { Host: host };
    const socket = new WebSocket(app.wsUrl.replace("/graphql", path), "graphql-transport-ws", { headers });
    const answered = new Promise<number>((resolve) => {
      socket.once("upgrade", () => resolve(101));
      socket.once("unexpected-response", (_req, res) => resolve(res.statusCode ?? 0));
    });
    socket.on("error", () => undefined);

    expect(await answered).toBe(status);
    socket.terminate();
  });
});

describe("one host for everything", () => {
  it("has its sessions under every name of the host", async () => {
    const single = await createTestApp({ upstream: app.upstream });
    try {
      const signedInThere = signedIn(await signUp(single));
      const statuses = await Promise.all(
        ["127.0.0.1", "localhost"].map(async (name) => {
          const url = single.baseUrl.replace("127.0.0.1", name);
          return (await fetch(`${url}/account/profile`, { headers: signedInThere })).status;
        }),
      );

      expect(statuses).toEqual([200, 200]);
    } finally {
      await single.close();
    }
  });
});
