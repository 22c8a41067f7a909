import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/config/config.js";
import type { LocalModel } from "../../../src/providers/ollama.js";
import { type Catalog, loadCatalog } from "../../../src/services/catalog/catalog.js";
import { toLocalSource } from "../../../src/services/catalog/local.js";
import { LocalModels } from "../../../src/services/catalog/local-models.js";
import { createClient } from "../../rest/client.js";
import { createTestApp, type TestApp } from "../../support/app.js";
import { eventually } from "../../support/eventually.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { chatCompletion } from "../../support/openai-bodies.js";
import { errorReply, handler, hang, json, type Reply } from "../../support/upstream-replies.js";

interface Installed {
  readonly digest: string;
  readonly capabilities?: readonly string[];
  readonly contextLength?: number;
}

/** An Ollama server with these models; `isOpenAi` leaves it OpenAI's list only. */
function ollama(models: Readonly<Record<string, Installed>>, isOpenAi = false): Extract<Reply, { kind: "handler" }> {
  return {
    kind: "handler",
    handle: (request, response) => {
      const send = (body: unknown, status = 200) =>
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      if (request.path === "/api/tags" && !isOpenAi) {
        return void send({
          models: Object.entries(models).map(([name, { digest }]) => ({ name, model: name, digest, size: 1, details: { family: "test" } })),
        });
      }
      if (request.path === "/v1/models")
        return void send({ object: "list", data: Object.keys(models).map((id) => ({ id, object: "model" })) });
      const shown = models[(request.json as { model?: string })?.model ?? ""];
      if (request.path !== "/api/show" || !shown) return void send({ error: "not found" }, 404);
      const length = shown.contextLength;
      send({
        capabilities: shown.capabilities,
        model_info: { "general.architecture": "test", ...(length && { "test.context_length": length }) },
      });
    },
  };
}

const LLAMA = { digest: "a1", capabilities: ["completion", "tools"], contextLength: 131_072 };
const EMBED = { digest: "b1", capabilities: ["embedding"], contextLength: 2_048 };
const ANONYMOUS = { kind: "anonymous" } as const;
const log = pino({ level: "silent" });

describe("the catalog of a local server", () => {
  let upstream: FakeUpstream;
  let catalog: Catalog;
  let watch: LocalModels;
  beforeEach(async () => {
    upstream = await startFakeUpstream();
    catalog = await loadCatalog(
      { modelsFile: null, hasSandboxModels: true, vendors: { ollama: { apiKey: null, baseUrl: upstream.baseUrl } }, readEnv: () => null },
      { now: () => new Date() },
    );
    watch = new LocalModels(upstream.baseUrl, catalog, log, 60_000);
  });
  /** And has asked, however long that takes. */
  const start = async () => {
    await watch.start();
    await watch.refresh();
  };
  afterEach(async () => {
    await watch.stop();
    await upstream.close();
  });

  it("lists all models of the server, free, by their capabilities", async () => {
    upstream.replyAlways(
      ollama({
        "llama3.2:latest": { ...LLAMA, capabilities: ["completion", "tools", "vision", "thinking"] },
        "nomic-embed-text:v1.5": EMBED,
      }),
    );
    await start();

    expect(catalog.find("ollama/llama3.2")).toMatchObject({
      id: "ollama/llama3.2:latest",
      modality: "text",
      capabilities: ["tools", "vision", "reasoning"],
      inputModalities: ["text", "image"],
      contextLength: 131_072,
      routes: [{ upstreamModel: "llama3.2:latest" }],
      flags: { paid: false },
    });
    expect(catalog.find("ollama/nomic-embed-text:v1.5")).toMatchObject({
      modality: "embedding",
      contextLength: 2_048,
      routes: [{ upstreamId: "ollama" }],
    });
    expect(catalog.upstream("ollama")).toMatchObject({ wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: null, isTrusted: true });
    expect(catalog.resolve(ANONYMOUS, undefined, "text").id).toBe("ollama/llama3.2:latest");
    expect(catalog.resolve(ANONYMOUS, undefined, "embedding").publisher).toBe("ollama");
  });

  it("follows the server, and asks about a model once for each of its digests", async () => {
    upstream.replyAlways(ollama({ "llama3.2:latest": LLAMA, "old:1b": LLAMA }));
    await start();
    upstream.replyAlways(ollama({ "llama3.2:latest": { ...LLAMA, digest: "a2", contextLength: 8_192 }, "new:1b": LLAMA }));
    await watch.refresh();

    expect(catalog.find("ollama/old:1b")).toBeNull();
    expect(catalog.find("ollama/new:1b")).not.toBeNull();
    expect(catalog.find("ollama/llama3.2")?.contextLength).toBe(8_192);
    await watch.refresh();
    expect(upstream.requests.filter(({ path }) => path === "/api/show")).toHaveLength(4);
  });

  it("keeps its last list while the server is away, and notices when it comes up", async () => {
    upstream.replyAlways(errorReply(503));
    await start();
    expect(catalog.resolve(ANONYMOUS, undefined, "text").id).toBe("sandbox/text");
    upstream.replyAlways(ollama({ "llama3.2:latest": LLAMA }));
    await watch.refresh();
    const found = catalog.find("ollama/llama3.2");
    expect(found).not.toBeNull();
    for (const reply of [errorReply(500), json("<html>"), json([])]) {
      upstream.replyAlways(reply);
      await watch.refresh();
      expect(catalog.find("ollama/llama3.2")).toBe(found);
    }
  });

  it("reads OpenAI's list of a server that has no other, and no names that an id cannot hold", async () => {
    upstream.replyAlways(ollama({ "qwen2.5-7b": LLAMA, "all-minilm": LLAMA, "bad name\n": LLAMA }, true));
    await start();

    expect(catalog.find("ollama/qwen2.5-7b")).toMatchObject({ modality: "text", contextLength: null });
    expect(catalog.find("ollama/all-minilm")?.modality).toBe("embedding");
    expect((await catalog.list({ caller: ANONYMOUS } as never, { search: "local model server" })).map(({ id }) => id)).toHaveLength(2);
  });

  it("does not keep a start waiting for a server that hangs", async () => {
    upstream.replyAlways(hang());
    await watch.start();

    const givenUp = upstream.requests.at(-1)?.closedByClient.then(() => "given up");
    expect(await Promise.race([givenUp, "still asking"])).toBe("still asking");
  });
});

describe("a source that changes", () => {
  const model = (name: string): LocalModel => ({ name, abilities: ["completion"], contextLength: null });

  it("is taken whole: allow lists, aliases and defaults follow at once", async () => {
    const catalog = await loadCatalog(
      {
        modelsFile: null,
        hasSandboxModels: true,
        vendors: { ollama: { apiKey: null, baseUrl: "http://127.0.0.1:9" } },
        readEnv: () => null,
      },
      { now: () => new Date() },
    );
    const allowedModels = ["ollama/a"];
    const caller = { kind: "key", modelLists: [allowedModels] } as never;
    catalog.replaceSource(toLocalSource("http://127.0.0.1:9", [model("a:latest")]));
    const before = catalog.resolve(caller, "ollama/a", "text");
    expect(before.isDefault).toBe(true);

    catalog.replaceSource(toLocalSource("http://127.0.0.1:9", [model("a"), model("0")]));

    expect(before.id).toBe("ollama/a:latest");
    expect(catalog.resolve(caller, "ollama/a", "text").id).toBe("ollama/a");
    expect(() => catalog.resolve(caller, "ollama/0", "text")).toThrow(/may not use/);
    expect(catalog.resolve(ANONYMOUS, undefined, "text").id).toBe("ollama/0");
  });
});

describe("a gateway with OLLAMA_BASE_URL", () => {
  let app: TestApp;
  let server: FakeUpstream;
  beforeAll(async () => {
    server = await startFakeUpstream();
    const lists = ollama({ "llama3.2:latest": LLAMA });
    // It is polled for its lists beside the other requests.
    server.replyAlways(
      handler((request, response) => {
        if (request.path !== "/v1/chat/completions") return lists.handle(request, response);
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(chatCompletion()));
      }),
    );
    const vendors = { ...parseConfig({}).vendors, ollama: { apiKey: null, baseUrl: `http://127.0.0.1:${server.port}` } };
    app = await createTestApp({ config: { vendors } });
  });
  afterAll(async () => {
    await app.close();
    await server.close();
  });

  it("answers with the server's model, free of charge", async () => {
    const client = createClient(app.baseUrl, app.key);
    await eventually(async () => expect((await client.get("/v1/models/ollama/llama3.2:latest")).status).toBe(200));

    const answer = await client.post("/v1/chat/completions", { model: "ollama/llama3.2", messages: [{ role: "user", content: "Hi" }] });

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-cost")).toBe("0");
    const asked = server.requests.filter(({ path }) => path === "/v1/chat/completions");
    expect(asked).toMatchObject([{ json: { model: "llama3.2:latest" } }]);
  });
});
