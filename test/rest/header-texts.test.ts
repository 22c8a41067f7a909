/** Texts of callers in the headers of answers and of requests to upstreams: they break no answer and add no header. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { recording } from "../support/recordings.js";
import { signUp } from "../support/sign-in.js";
import { json } from "../support/upstream-replies.js";
import { type Client, createClient } from "./client.js";

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

const CHARACTERS = [
  '"',
  "\\",
  "%",
  "/",
  "'",
  ";",
  ",",
  "\t",
  "\r",
  "\n",
  "\r\nX-Injected: 1",
  "\x1f",
  "\x7f",
  "\x80",
  "é",
  "日",
  "😀",
  "\u2028",
];
/** As far as an HTTP client may send them in a header: Latin-1 without control characters. */
const SENDABLE = CHARACTERS.filter((character) => /^[\t\x20-\x7e\x80-\xff]$/.test(character));

/** An answer of that status, and the header if it is there. */
type Told = readonly [status: number, header: string | null];
const PRINTABLE = /^[\x20-\x7e]*$/;

/** As the app's addresses name this machine by a name that may mean another address family. */
const reachable = (url: string) => url.replace("//localhost", "//127.0.0.1");

async function told(answer: Response, name: string): Promise<Told> {
  await answer.arrayBuffer();
  expect(answer.headers.get("x-injected")).toBeNull();
  return [answer.status, answer.headers.get(name)];
}

const get = async (path: string, name: string, headers: Record<string, string> = {}): Promise<Told> =>
  told(await fetch(reachable(new URL(path, app.baseUrl).href), { headers, redirect: "manual" }), name);

function nameIn(disposition: string | null): string | null {
  const [, plain = null, extended] = /filename="([^"\\]*)"(?:; filename\*=UTF-8''(\S+))?$/.exec(disposition ?? "") ?? [];
  return extended === undefined ? plain : decodeURIComponent(extended);
}

it.each(CHARACTERS)("reports an unknown field in X-Warnings: %j", async (character) => {
  const { status, headers } = await client.post("/v1/chat/completions", {
    model: "acme/chat",
    messages: [{ role: "user", content: "Hello" }],
    [`temperatur${character}`]: 1,
  });

  expect([status, headers.get("x-injected")]).toEqual([200, null]);
  expect(headers.get("x-warnings") ?? "").toMatch(PRINTABLE);
});

it.each(CHARACTERS)("names a downloaded file: %j", async (character) => {
  const name = `a${character}b`;
  // The same bytes are one file, which keeps its first name.
  const data = Buffer.from(`\0${character}`).toString("base64");
  const uploaded = await client.post("/media/upload", { data, contentType: "application/octet-stream", name });
  const [status, disposition] = await get(uploaded.json<{ url: string }>().url, "content-disposition");

  expect([uploaded.status, status, nameIn(disposition)]).toEqual([200, 200, name]);
});

it.each(CHARACTERS)("names a file that was uploaded to its own address: %j", async (character) => {
  const name = `a${character}b`;
  const announced = await client.post("/media/upload", { contentType: "application/octet-stream", size: 5, name });
  const { id, uploadUrl, headers } = announced.json<{ id: string; uploadUrl: string; headers: Record<string, string> }>();
  const put = await fetch(reachable(uploadUrl), { method: "PUT", headers, body: new Uint8Array([0, 1, 2, 3, 4]) });
  const completed = await client.post(`/media/upload/${id}/complete`, {});
  const [, location] = await get(`/media/${id}`, "location");
  const [status, disposition] = await get(location ?? "", "content-disposition");

  expect([put.ok, completed.status, status, nameIn(disposition)]).toEqual([true, 200, 200, name]);
});

it.each(SENDABLE)("refuses a key in WWW-Authenticate: %j", async (character) => {
  const [status, challenge] = await get("/account/key", "www-authenticate", { authorization: `Bearer sk_${character}a` });

  expect(status).toBe(401);
  expect(challenge).toMatch(/^Bearer(?: error="[\x20-\x21\x23-\x5b\x5d-\x7e]*", error_description="[\x20-\x21\x23-\x5b\x5d-\x7e]*")?$/);
});

it.each(SENDABLE)("allows a page the names of headers alone: %j", async (character) => {
  const answer = await fetch(`${app.baseUrl}/v1/chat/completions`, {
    method: "OPTIONS",
    headers: {
      origin: "https://a.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": `x-a${character}b, x-c`,
    },
  });
  const [status, allowed] = await told(answer, "access-control-allow-headers");

  expect(status).toBe(204);
  expect(allowed).toMatch(/^[A-Za-z0-9-]+(?:, [A-Za-z0-9-]+)*$/);
  expect(allowed).toContain("x-c");
});

it.each(SENDABLE)("keeps a browser's user agent: %j", async (character) => {
  const person = await signUp(app);
  const answer = await fetch(`${app.baseUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", "user-agent": `Browser ${character}` },
    body: JSON.stringify({
      query: "mutation ($input: SignInInput!) { signIn(input: $input) { __typename } }",
      variables: { input: { email: person.email, password: person.password } },
    }),
  });

  expect(await answer.json()).toMatchObject({ data: { signIn: {} } });
});

it.each(CHARACTERS)("sends a form with the caller's parts to an upstream: %j", async (character) => {
  app.upstream.replyNext(json({ text: "Hello." }));
  const name = `field${character}b`;
  const form = new FormData();
  form.append("model", "acme/transcription");
  form.append(name, "value");
  form.append("file", new Blob([new Uint8Array(recording(0.1))]), `a${character}b.wav`);
  const before = app.upstream.requests.length;

  const answer = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, {
    method: "POST",
    headers: { authorization: `Bearer ${app.key}` },
    body: form,
  });

  await answer.arrayBuffer();
  const sent = app.upstream.requests.slice(before);
  // A control character has no place in the head of a part: the form is refused.
  const isRead = character !== "\x1f" && character !== "\x7f";
  expect([answer.status, sent.length]).toEqual(isRead ? [200, 1] : [400, 0]);
  const parts = (sent[0]?.body.toString() ?? "").split("\r\n").filter((line) => /^content-disposition:/i.test(line));
  expect(parts).toEqual([...new Set(parts)]);
  for (const line of parts) expect(line).toMatch(/^content-disposition: form-data; name="[^"\r\n]+"(?:; filename="[^"\r\n]*")?$/i);
});
