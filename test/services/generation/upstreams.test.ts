/**
 * Upstreams that accounts have registered: which addresses are called, the requests, and how many are kept
 * (docs/spec/outbound.md#urls, docs/spec/community-models.md#upstreams).
 */
import { setMaxListeners } from "node:events";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AppError } from "../../../src/errors.js";
import { ProviderError } from "../../../src/formats/upstream-error.js";
import { OutboundGuard, type OutboundGuardOptions } from "../../../src/lib/outbound-guard.js";
import type { Catalog } from "../../../src/services/catalog/catalog.js";
import type { Upstream } from "../../../src/services/catalog/model.js";
import { toCallerError } from "../../../src/services/generation/failures.js";
import type { Candidate } from "../../../src/services/generation/routing/candidate.js";
import { COMMUNITY_UPSTREAMS_MAX, COMMUNITY_WAITING_MAX, HOPS_MAX, Upstreams } from "../../../src/services/generation/upstreams.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { chatChunk } from "../../support/openai-bodies.js";
import { PRIVATE_URLS } from "../../support/private-urls.js";
import { candidateOf, routeTo } from "../../support/routes.js";
import { flood, hang, json, raw, sse, waitFor } from "../../support/upstream-replies.js";

const TIMEOUTS = { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 };

let server: FakeUpstream;
const opened: { upstreams: Upstreams; guard: OutboundGuard }[] = [];

beforeAll(async () => {
  server = await startFakeUpstream();
});
afterAll(async () => {
  await server.close();
  await Promise.all(opened.flatMap(({ upstreams, guard }) => [upstreams.close(), guard.close()]));
});
beforeEach(() => server.replyAlways(null));

/** All that the catalog would know of the upstream is its id, which here is its URL. */
function open(options: Partial<OutboundGuardOptions> = {}, more: Partial<Upstream> = {}): Upstreams {
  const endpoint = { modality: "text", api: "chat_completions" } as const;
  const upstream = (id: string): Upstream => ({
    id,
    wireFormat: "openai-endpoint",
    baseUrl: id,
    apiKey: "owner-token",
    isTrusted: false,
    endpoint,
    ...more,
  });
  const guard = new OutboundGuard({ allowHosts: ["127.0.0.1"], ...options });
  const upstreams = new Upstreams({ upstream } as unknown as Catalog, TIMEOUTS, guard);
  opened.push({ upstreams, guard });
  return upstreams;
}

function modelAt(url: string): Candidate {
  return candidateOf({ id: "community/owner/model" }, routeTo(url, "theirs"));
}

function url(path = "/v1/chat/completions"): string {
  return `http://127.0.0.1:${server.port}${path}`;
}

const call = () => ({
  upstreamModel: "theirs",
  body: { messages: [{ role: "user", content: "Hi" }] },
  signal: new AbortController().signal,
});

async function failureOf(work: () => Promise<unknown>): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe("an address", () => {
  it("without a public host is never called, wherever it comes from", async () => {
    const upstreams = open({ allowHosts: [] });
    const seen = server.connectionsSeen();

    for (const text of PRIVATE_URLS) {
      const model = modelAt(text.replace("PORT", String(server.port)));
      const failure = await failureOf(() => Promise.resolve().then(() => upstreams.serving({}, model, "chat").complete(call())));
      expect(failure, text).toBeInstanceOf(ProviderError);
      expect(toCallerError(failure, model), text).toMatchObject({ code: "UPSTREAM_ERROR", message: "The upstream could not be reached." });
    }

    expect(server.connectionsSeen()).toBe(seen);
  });

  it("is checked by its resolved address at each call, and refused when that has changed", async () => {
    const answers = ["93.184.215.14", "127.0.0.1"];
    const resolve = async () => [{ address: answers.shift() ?? "127.0.0.1", family: 4 }];
    const upstreams = open({ allowHosts: [], resolve });
    const address = `https://flips.example:${server.port}/v1/chat/completions`;
    const seen = server.connectionsSeen();
    await opened.at(-1)?.guard.check(address);

    const failure = await failureOf(() => upstreams.serving({}, modelAt(address), "chat").complete(call()));

    expect(toCallerError(failure, modelAt(address))).toMatchObject({ code: "UPSTREAM_ERROR" });
    expect(server.connectionsSeen()).toBe(seen);
  });

  it("with a redirect is not followed", async () => {
    const target = await startFakeUpstream();
    const upstreams = open();
    for (const status of [301, 302, 307, 308]) {
      server.replyNext(raw("", { status, headers: { location: `http://127.0.0.1:${target.port}/` } }));

      const failure = await failureOf(() => upstreams.serving({}, modelAt(url()), "chat").complete(call()));

      expect(toCallerError(failure, modelAt(url()))).toMatchObject({ code: "UPSTREAM_ERROR" });
    }
    expect(target.connectionsSeen()).toBe(0);
    await target.close();
  });
});

describe("an answer", () => {
  it.each([
    ["without end", flood(`${" ".repeat(65_536)}`)],
    ["that says it is encoded", raw("x", { headers: { "content-type": "application/json", "content-encoding": "gzip" } })],
    ["that is no object", json([1])],
    ["nested a thousand deep", json(`{"choices":${"[".repeat(1_000)}${"]".repeat(1_000)}}`)],
  ])("%s is refused", async (_, reply) => {
    server.replyNext(reply);
    const failure = await failureOf(() => open().serving({}, modelAt(url()), "chat").complete(call()));
    expect(failure).toMatchObject({ kind: "invalid-response" });
  });
});

describe("the hop count", () => {
  it.each([
    [undefined, "1"],
    [0, "1"],
    [HOPS_MAX, String(HOPS_MAX + 1)],
  ])("is raised: after %s the upstream gets %s", async (hops, told) => {
    await open().serving({ hops }, modelAt(url()), "chat").complete(call());
    expect(server.requests.at(-1)?.headers["x-sluice-hops"]).toBe(told);
  });

  it.each([HOPS_MAX + 1, Number.POSITIVE_INFINITY])("may not be %s", async (hops) => {
    const seen = server.requests.length;

    const failure = await failureOf(async () => open().serving({ hops }, modelAt(url()), "chat"));

    expect(failure).toBeInstanceOf(AppError);
    expect(failure).toMatchObject({ code: "BAD_REQUEST", param: "model" });
    expect(server.requests.length).toBe(seen);
  });

  it("is sent to an operator's upstream when it is above zero", async () => {
    const own = open({}, { wireFormat: "openai", endpoint: undefined, isTrusted: true, baseUrl: server.baseUrl });

    await own.serving({}, modelAt("acme"), "chat").complete(call());
    expect(server.requests.at(-1)?.headers).not.toHaveProperty("x-sluice-hops");
    await own.serving({ hops: 1 }, modelAt("acme"), "chat").complete(call());
    expect(server.requests.at(-1)?.headers["x-sluice-hops"]).toBe("2");
  });
});

describe("kept upstreams", () => {
  it("are bounded: the least recently called is closed after its answer has ended", async () => {
    let finish: (value?: unknown) => void = () => undefined;
    const finished = new Promise((resolve) => {
      finish = resolve;
    });
    const upstreams = open();
    server.replyNext(sse([chatChunk({ content: "a" }), waitFor(finished), chatChunk({ content: "b" }, "stop")]));
    const stream = await upstreams.serving({}, modelAt(url("/first")), "chat").stream(call());
    const connection = server.requests.at(-1)?.connection;

    for (let index = 0; index < COMMUNITY_UPSTREAMS_MAX; index += 1) upstreams.serving({}, modelAt(url(`/${index}`)), "chat");
    finish();
    const pieces: unknown[] = [];
    for await (const batch of stream) pieces.push(...batch.map(({ object }) => object.choices?.[0]?.delta?.content));
    expect(pieces).toEqual(["a", "b"]);
    await upstreams.serving({}, modelAt(url("/v1/chat/completions?first")), "chat").complete(call());

    expect(server.requests.at(-1)?.connection).not.toBe(connection);
  });

  it("share one set of connections for requests of different hop counts", async () => {
    const upstreams = open();
    const connections = new Set<number | undefined>();
    for (const hops of [0, 1, 2]) {
      await upstreams.serving({ hops }, modelAt(url()), "chat").complete(call());
      connections.add(server.requests.at(-1)?.connection);
    }
    // A request that follows at once may find the connection still busy.
    expect(connections.size).toBeLessThan(3);
  });

  it("limit the requests that wait for a connection", async () => {
    server.replyAlways(hang());
    const upstreams = open();
    const leaving = new AbortController();
    setMaxListeners(0, leaving.signal);
    const many = Array.from({ length: 64 + COMMUNITY_WAITING_MAX }, () =>
      failureOf(() => upstreams.serving({}, modelAt(url()), "chat").complete({ ...call(), signal: leaving.signal })),
    );

    const failure = await failureOf(() => upstreams.serving({}, modelAt(url()), "chat").complete(call()));

    expect(failure).toMatchObject({ kind: "network", message: "Too many requests wait for a connection to the upstream." });
    leaving.abort(new Error("done"));
    await Promise.all(many);
  });
});
