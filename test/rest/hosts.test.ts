/** Which hosts a gateway answers to: a page whose name was made to lead to this machine must find nothing there. */
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { textOf } from "../graphql/client.js";
import { SignUpDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { bodyOf, sendRaw } from "./serve.js";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp({ config: { authUrl: "http://login.example:8443", mediaUrl: "https://Media.Example/files" } });
});
afterAll(() => app.close());

interface Answered {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

function ask(host: string, path: string, { method = "GET", headers = {}, body }: Asked = {}, url = app.baseUrl): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { "Content-Type": "application/json" };
    const sent = request(url + path, { method, headers: { Host: host, ...type, ...headers } }, async (res) => {
      const chunks: Buffer[] = [];
      for await (const chunk of res) chunks.push(chunk as Buffer);
      resolve({ status: res.statusCode ?? 0, type: res.headers["content-type"] ?? "", text: Buffer.concat(chunks).toString() });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const portOf = (url: string) => Number(new URL(url).port);

describe("A gateway on the loopback", () => {
  it.each([
    "localhost",
    "localhost:4000",
    "LOCALHOST:9",
    "localhost.",
    "localhost.:4000",
    "127.0.0.1:4000",
    "127.1.2.3",
    "127.1",
    "0x7f.1:80",
    "[::1]:4000",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]:4000",
    "login.example",
    "LOGIN.example.:1",
    "",
  ])("answers to %j", async (host) => {
    expect((await ask(host, "/account/key", { headers: { Authorization: `Bearer ${app.key}` } })).status).toBe(200);
  });

  it.each([
    "evil.com:4230",
    "localhost.evil.com",
    "evil.localhost",
    "127.0.0.1.evil.com",
    "0.0.0.0:4000",
    "[::]:4000",
    "10.0.0.1",
    "[::ffff:10.0.0.1]",
    "login.example.evil.com",
    "xlogin.example",
    "localhost/@evil.com",
    "localhost#evil.com",
    "evil.com@localhost",
    "localhost:port",
    ":4000",
  ])("refuses %j", async (host) => {
    const refused = await ask(host, "/v1/models", { headers: { "X-Forwarded-Host": "localhost" } });

    expect(refused.status).toBe(421);
    expect(JSON.parse(refused.text)).toMatchObject({
      status: 421,
      success: false,
      error: { code: "MISDIRECTED_REQUEST", type: "invalid_request_error", param: null, message: expect.stringContaining("BASE_URL") },
    });
  });

  it("refuses it on every path, before a key or a cookie is looked at", async () => {
    const headers = { Authorization: `Bearer ${app.key}` };
    const paths = ["/", "/metrics", "/docs", "/account/key", "/sign-in", "/files/media", "/mcp", "/schema.graphql", "/nowhere", "/healthz"];

    for (const path of paths) expect([path, (await ask("evil.com:4230", path, { headers })).status]).toEqual([path, 421]);
    expect((await ask("evil.com:4230", "/v1/chat/completions", { method: "OPTIONS" })).status).toBe(421);
    const page = await ask("evil.com:4230", "/sign-in", { headers: { Accept: "text/html,*/*;q=0.8" } });
    expect(page).toMatchObject({ status: 421, type: "text/html; charset=utf-8" });
  });

  it("names the address of files for a path below /media", async () => {
    const { status, text } = await ask("localhost", "/media/upload", { method: "POST", body: "{}" });

    expect(status).toBe(404);
    expect(JSON.parse(text).error.message).toBe(
      "No such path. Files have an address of their own here: https://Media.Example/files/upload.",
    );
  });

  it("creates no account for a page under a rebound name, which the browser takes for its own", async () => {
    const variables = { input: { email: "led@example.com", password: "correct horse battery" } };
    const headers = { Origin: "http://evil.com:4230", "Sec-Fetch-Site": "same-origin" };
    const body = JSON.stringify({ query: textOf(SignUpDocument), variables });

    const refused = await ask("evil.com:4230", "/graphql", { method: "POST", headers, body });

    expect(refused.status).toBe(421);
    expect(JSON.parse(refused.text)).toEqual({
      errors: [{ message: expect.stringContaining("BASE_URL"), extensions: expect.objectContaining({ code: "MISDIRECTED_REQUEST" }) }],
    });
    expect(await app.database.prisma.account.count({ where: { email: "led@example.com" } })).toBe(0);
  });

  it.each(["/graphql", "/v1/realtime", "/v1/responses", "/nowhere"])("opens no WebSocket at %s", async (path) => {
    const url = app.wsUrl.replace("/graphql", `${path}?model=acme/realtime`);
    const opening = (host: string) =>
      new Promise<number>((resolve) => {
        const headers = { Host: host, Authorization: `Bearer ${app.key}` };
        const socket = new WebSocket(url, "graphql-transport-ws", { headers });
        socket.on("error", () => undefined);
        socket.once("upgrade", () => {
          socket.terminate();
          resolve(101);
        });
        socket.once("unexpected-response", (_req, res) => resolve(res.resume().statusCode ?? 0));
      });

    expect(await opening("evil.com:4230")).toBe(421);
    expect(await opening("localhost")).not.toBe(421);
  });

  it("answers HTTP/1.0 without a Host, as health checks have it, and refuses HTTP/1.1 without one", async () => {
    const port = portOf(app.baseUrl);

    expect(await sendRaw(port, "GET /healthz HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 /);
    expect(await sendRaw(port, "GET /healthz HTTP/1.0\r\nHost: evil.com\r\n\r\n")).toMatch(/^HTTP\/1\.1 421 /);
    expect(await sendRaw(port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /);
  });

  it("looks at the host of a target in absolute form beside the header", async () => {
    const port = portOf(app.baseUrl);
    const answer = (target: string, host: string) => sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);

    expect(await answer("http://localhost:4000/healthz", "localhost:4000")).toMatch(/^HTTP\/1\.1 200 /);
    expect(bodyOf(await answer("http://evil.com/healthz", "localhost")).error.code).toBe("MISDIRECTED_REQUEST");
    expect(bodyOf(await answer("http://localhost/healthz", "evil.com")).error.code).toBe("MISDIRECTED_REQUEST");
  });
});

describe("A gateway that others can reach", () => {
  it("answers under every host name: its operator decides which names lead to it", async () => {
    const open = await createTestApp({ config: { host: "0.0.0.0" }, upstream: app.upstream });
    try {
      const { port } = open.app.addresses;
      for (const host of ["gateway", "evil.com:4230", "10.0.0.1"]) {
        expect([host, (await ask(host, "/healthz", {}, `http://127.0.0.1:${port}`)).status]).toEqual([host, 200]);
      }
    } finally {
      await open.close();
    }
  });
});
