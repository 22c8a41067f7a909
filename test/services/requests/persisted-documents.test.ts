/**
 * Documents under their digests: how many are kept for each caller, in memory and through Redis, and the format of a
 * manifest.
 */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/lib/clock.js";
import { DOCUMENT_BYTES_MAX, DOCUMENTS_PER_CALLER_MAX } from "../../../src/services/requests/limits.js";
import { digestOf, PersistedDocuments, readTrustedDocuments } from "../../../src/services/requests/persisted-documents.js";
import { MemoryCounters } from "../../../src/store/counters.js";
import { openDocuments } from "../../../src/store/documents/open.js";
import { MemoryDocuments } from "../../../src/store/documents.js";
import { createEmptyDir, silentLog } from "../../support/database.js";
import { isRedisInstalled, REDIS_ABSENT, startRedis, type TestRedis } from "../../support/redis.js";
import { nobody } from "../../support/sign-in.js";

const text = (name: number | string) => `{ a${name}: __typename }`;

function documentsOf(trusted: readonly string[] = [], isOnly = false): PersistedDocuments {
  const manifest = new Map(trusted.map((document) => [digestOf(document), document]));
  return new PersistedDocuments(manifest, new MemoryDocuments(), new MemoryCounters(systemClock), isOnly);
}

describe("registered documents", () => {
  it("are at most 500 of one caller, and evict documents of no other caller", async () => {
    const documents = documentsOf();
    const register = (name: number | string, address: string) =>
      documents.register({ ...nobody(), clientAddress: address }, digestOf(text(name)), text(name));
    await register("other", "192.0.2.2");
    for (let index = 0; index <= DOCUMENTS_PER_CALLER_MAX; index += 1) await register(index, "192.0.2.1");
    // A document that is kept already counts for no caller.
    await register("other", "192.0.2.1");

    expect(await documents.find(digestOf(text(DOCUMENTS_PER_CALLER_MAX - 1)))).toBe(text(DOCUMENTS_PER_CALLER_MAX - 1));
    expect(await documents.find(digestOf(text(DOCUMENTS_PER_CALLER_MAX)))).toBeNull();
    expect(await documents.find(digestOf(text("other")))).toBe(text("other"));
  });

  it("are bounded in length, each and together", async () => {
    const documents = documentsOf();
    const atMost = `# ${"x".repeat(DOCUMENT_BYTES_MAX - 2)}`;
    for (const document of [atMost, `${atMost}x`]) await documents.register(nobody(), digestOf(document), document);
    const store = new MemoryDocuments();
    for (let index = 0; index <= 10_000; index += 1) await store.keep(String(index), text(index));

    expect(await documents.find(digestOf(atMost))).toBe(atMost);
    expect(await documents.find(digestOf(`${atMost}x`))).toBeNull();
    expect(await store.find("0")).toBeNull();
    expect(await store.find("10000")).toBe(text(10_000));
  });

  it("are none where the manifest's are the only ones", async () => {
    const documents = documentsOf([text("trusted")], true);
    await documents.register(nobody(), digestOf(text(1)), text(1));

    expect(await documents.find(digestOf(text(1)))).toBeNull();
    expect(await documents.find(digestOf(text("trusted")))).toBe(text("trusted"));
  });
});

if (!isRedisInstalled) console.warn(`skipped: ${REDIS_ABSENT}`);

describe.skipIf(!isRedisInstalled)("registered documents of two processes", () => {
  let redis: TestRedis | null;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.stop());

  it("are shared through Redis, for a day, and each process's own while that is away", async () => {
    const open = () => openDocuments({ redisUrl: redis?.url ?? "", log: silentLog });
    const [one, other] = [await open(), await open()];
    onTestFinished(() => {
      one.close();
      other.close();
    });
    // Until both are connected nothing is shared, and nothing fails.
    let name = 0;
    await expect
      .poll(async () => {
        name += 1;
        await one.keep(String(name), text(name));
        return other.find(String(name));
      })
      .not.toBeNull();
    await redis?.kill9();

    await one.keep("later", text("later"));

    expect(await one.find("later")).toBe(text("later"));
    expect(await other.find("later")).toBeNull();
    expect(await other.find(String(name))).toBe(text(name));
  });
});

describe("a manifest", () => {
  let directory: string;
  beforeAll(async () => {
    directory = await createEmptyDir();
  });
  afterAll(() => rm(directory, { recursive: true }));

  const read = async (content: string, isOnly = false) => {
    const file = join(directory, "persisted.json");
    await writeFile(file, content);
    return readTrustedDocuments({ file, isOnly });
  };

  it("maps digests to the texts that have them", async () => {
    expect(await read(JSON.stringify({ [digestOf("{ a }")]: "{ a }" }))).toEqual(new Map([[digestOf("{ a }"), "{ a }"]]));
  });

  it("is the repository's own unless another is named", async () => {
    expect((await readTrustedDocuments({ file: null, isOnly: true })).size).toBeGreaterThan(0);
  });

  it.each([
    ["is no JSON", "{", false, /is not valid JSON/],
    ["holds no texts", "[1]", false, /must map the SHA-256 of each document to its text/],
    ["holds a text of another digest", JSON.stringify({ [digestOf("{ a }")]: "{ b }" }), false, /has another SHA-256/],
    ["is empty where no others are answered", "{}", true, /GRAPHQL_PERSISTED_ONLY is set, and .* holds no document/],
  ])("stops the start when it %s", async (_what, content, isOnly, message) => {
    await expect(read(content, isOnly)).rejects.toThrow(message);
  });

  it("stops the start when it is named and not there", async () => {
    await expect(readTrustedDocuments({ file: join(directory, "absent.json"), isOnly: false })).rejects.toThrow(/cannot be read/);
  });
});
