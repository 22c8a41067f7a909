import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { json } from "../support/upstream-replies.js";
import { type Client, type CreatedKey, createClient, createKey, expectEnvelope, type UsageJson } from "./client.js";
import { createStranger, createUsage } from "./seed.js";

const COLUMNS = [
  "id",
  "timestamp",
  "type",
  "model",
  "api_key_id",
  "api_key",
  "api_key_type",
  "meter_source",
  "input_text_tokens",
  "input_cached_tokens",
  "input_cache_write_tokens",
  "input_audio_tokens",
  "input_image_tokens",
  "output_text_tokens",
  "output_reasoning_tokens",
  "output_audio_tokens",
  "output_image_tokens",
  "output_video_seconds",
  "output_audio_seconds",
  "cost_usd",
  "response_time_ms",
  "time_to_first_token_ms",
  "status",
  "usage_source",
  "request_id",
  "parent_request_id",
  "upstream",
  // The keys here are an operator's.
  "upstream_cost_usd",
  "vendor_key_id",
  "app_margin_usd",
];

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

/** A chat on this key, of 1,000 prompt and 500 completion tokens: 0.002 credits. Answers the generation's id. */
async function chat(key: string): Promise<string> {
  app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(1000, 500) })));
  const answer = await client.post("/v1/chat/completions", { messages: [{ role: "user", content: "Hello" }] }, { key });
  expect(answer.status).toBe(200);
  return answer.headers.get("x-generation-id") ?? "";
}

async function usageOf(key: CreatedKey, query = ""): Promise<UsageJson> {
  const answer = await client.get(`/account/key/usage?${query}`, { key: key.key });
  expect(answer.status).toBe(200);
  return answer.json<UsageJson>();
}

for (const prefix of ["/account", "/api/account"]) {
  describe(`usage under ${prefix}`, () => {
    it("is a row for each generation, with the documented columns", async () => {
      const key = await createKey(app, { name: "metered", accountPermissions: ["usage"] });
      const id = await chat(key.key);

      const answer = await client.get(`${prefix}/usage?limit=1`, { key: key.key });

      expect(answer.status).toBe(200);
      const { usage, count } = answer.json<UsageJson>();
      expect(count).toBe(1);
      expect(Object.keys(usage[0] ?? {})).toEqual(COLUMNS);
      expect(usage[0]).toMatchObject({
        id,
        request_id: id,
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        type: "generate.text",
        model: "acme/chat",
        api_key_id: key.id,
        api_key: "metered",
        api_key_type: "secret",
        meter_source: "pack",
        input_text_tokens: 1000,
        input_cached_tokens: 0,
        output_text_tokens: 500,
        output_video_seconds: 0,
        cost_usd: 0.002,
        response_time_ms: expect.any(Number),
        status: "ok",
        usage_source: "provider",
        parent_request_id: null,
        upstream: "acme",
        upstream_cost_usd: null,
      });
    });

    it("is summed by day, model and source, and says how old it may be", async () => {
      const stranger = createClient(app.baseUrl, (await createStranger(app)).key);
      expect((await stranger.get(`${prefix}/usage/daily`)).json()).toEqual({ usage: [], count: 0, as_of: expect.stringMatching(/Z$/) });
      await chat(app.key);

      const answer = await client.get(`${prefix}/usage/daily`);

      expect(answer.headers.get("cache-control")).toBe("private, max-age=3600");
      const { usage, count } = answer.json<UsageJson>();
      expect(count).toBe(usage.length);
      const today = new Date().toISOString().slice(0, 10);
      const row = usage.find(({ date, model }) => date === today && model === "acme/chat");
      expect(Object.keys(row ?? {})).toEqual(["date", "model", "meter_source", "requests", "cost_usd"]);
      expect(row).toMatchObject({ meter_source: "pack" });
      expect(row?.cost_usd).toBeCloseTo(Number(row?.requests) * 0.002, 9);
    });

    it("needs the permission, except for the key's own", async () => {
      const without = await createKey(app, { accountPermissions: ["profile", "balance"] });

      for (const path of ["/usage", "/usage?format=csv", "/usage/daily", "/usage/daily?format=csv"]) {
        expectEnvelope(await client.get(prefix + path, { key: without.key }), 403, "FORBIDDEN");
        expectEnvelope(await client.get(prefix + path, { key: null }), 401, "UNAUTHORIZED");
      }
      expect((await client.get(`${prefix}/key/usage`, { key: without.key })).json()).toMatchObject({ usage: [], count: 0 });
      expectEnvelope(await client.get(`${prefix}/key/usage`, { key: null }), 401, "UNAUTHORIZED");
    });
  });
}

describe("pages of usage", () => {
  it("follow one another by time and id, without a gap or a repetition", async () => {
    const key = await createKey(app);
    const ids = await createUsage(app, key.id, 5, new Date(Date.now() - 60_000));

    const seen: unknown[] = [];
    let query = "limit=2";
    for (;;) {
      const page = await usageOf(key, query);
      seen.push(...page.usage.map(({ id }) => id));
      if (page.next_before === null) break;
      query = `limit=2&before=${encodeURIComponent(page.next_before)}&before_id=${page.next_before_id}`;
    }

    expect(seen).toEqual(ids);
  });

  it("begin after `before`, which is exclusive", async () => {
    const key = await createKey(app);
    const newest = new Date(Date.now() - 60_000);
    const [, second] = await createUsage(app, key.id, 2, newest);

    expect((await usageOf(key, `before=${newest.toISOString()}`)).usage.map(({ id }) => id)).toEqual([second]);
    const sameTimeElsewhere = `${new Date(newest.getTime() + 2 * 3_600_000).toISOString().slice(0, -1)}+02:00`;
    expect((await usageOf(key, `before=${encodeURIComponent(sameTimeElsewhere)}`)).usage.map(({ id }) => id)).toEqual([second]);
  });

  it("break ties by id", async () => {
    const key = await createKey(app);
    const at = new Date(Date.now() - 60_000);
    const ids = [...(await createUsage(app, key.id, 1, at)), ...(await createUsage(app, key.id, 1, at))].sort().reverse();

    const first = await usageOf(key, "limit=1");
    const second = await usageOf(key, `limit=1&before=${first.next_before}&before_id=${first.next_before_id}`);

    expect([first.usage[0]?.id, second.usage[0]?.id]).toEqual(ids);
  });

  it("reach back the requested number of days", async () => {
    const key = await createKey(app);
    const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000 + 60_000);
    await createUsage(app, key.id, 1, daysAgo(1));
    await createUsage(app, key.id, 1, daysAgo(30));
    await createUsage(app, key.id, 1, daysAgo(90));

    expect((await usageOf(key, "days=1")).count).toBe(1);
    expect((await usageOf(key)).count).toBe(2);
    expect((await usageOf(key, "days=90")).count).toBe(3);
  });

  it("hold 100 rows by default", async () => {
    const key = await createKey(app);
    await createUsage(app, key.id, 101, new Date(Date.now() - 60_000));

    expect((await usageOf(key)).count).toBe(100);
    expect((await usageOf(key, "limit=50000")).count).toBe(101);
  });
});

describe("filters of usage", () => {
  it("find the rows that answer to all of them, as JSON and as CSV", async () => {
    const [key, other] = [await createKey(app, { name: "Filtered_100%" }), await createKey(app, { name: "other" })];
    const at = new Date(Date.now() - 3_600_000);
    const add = async (of: CreatedKey, seconds: number, more: Parameters<typeof createUsage>[4]) =>
      (await createUsage(app, of.id, 1, new Date(at.getTime() + seconds * 1000), more))[0] as string;
    const a = await add(key, 0, { costNanocredits: 5_000_000n, model: "filters/one" });
    const b = await add(key, 1, { status: "cancelled", model: "filters/two" });
    const c = await add(other, 2, { modality: "image", model: "filters/two" });
    const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: key.id } });
    await app.database.prisma.usageDaily.createMany({
      data: ["filters/one", "filters/two"].map((model) => ({
        accountId,
        day: new Date(at.getTime() - 20 * 86_400_000),
        model,
        meterSource: "pack" as const,
        requests: 1,
        costNanocredits: 1n,
      })),
    });
    const both = `api_key_ids=${key.id},${other.id}`;
    const time = (seconds: number) => encodeURIComponent(new Date(at.getTime() + seconds * 1000).toISOString());

    for (const [query, found] of [
      [both, [c, b, a]],
      [`api_key_ids=${key.id}`, [b, a]],
      [`api_key_ids=${key.id.toUpperCase()}, no-key`, [b, a]],
      [`${both}&model_ids=filters/two,filters/none`, [c, b]],
      [`${both}&modalities=image,video`, [c]],
      [`${both}&statuses=cancelled`, [b]],
      [`${both}&min_cost_usd=0.005`, [a]],
      [`${both}&min_cost_usd=0.005000001`, []],
      [`${both}&from=${time(1)}`, [c, b]],
      [`${both}&to=${time(1)}`, [a]],
      [`${both}&from=${time(1)}&to=${time(1)}`, []],
      [`search=ilters/TWO`, [c, b]],
      [`search=d_100%25`, [b, a]],
      [`search=d_1_0`, []],
      [`search=${c}`, [c]],
      [`search=filters&statuses=ok&api_key_ids=${key.id}`, [a]],
    ] as const) {
      const json = await client.get(`/account/usage?${query}`);
      expect(
        json.json<UsageJson>().usage?.map(({ id }) => id),
        query,
      ).toEqual(found);
      const csv = await client.get(`/account/usage?format=csv&${query}`);
      expect(
        csv.text
          .split("\r\n")
          .slice(1, -1)
          .map((row) => row.split(",")[0]),
        query,
      ).toEqual(found);
    }
    const own = await client.get(`/account/key/usage?${both}&search=filters`, { key: other.key });
    expect(own.json<UsageJson>().usage.map(({ id }) => id)).toEqual([c]);
  });

  it("answer another account's ids like missing ones", async () => {
    const stranger = await createStranger(app);
    const key = await createKey(app);
    const [row] = await createUsage(app, key.id, 1, new Date(Date.now() - 60_000));
    const theirs = createClient(app.baseUrl, stranger.key);

    for (const query of [`api_key_ids=${key.id}`, `search=${row}`]) {
      expect((await theirs.get(`/account/usage?${query}`)).json(), query).toMatchObject({ usage: [], count: 0 });
    }
  });

  it("name the impossible ones", async () => {
    const ids = (count: number) => Array.from({ length: count }, (_, index) => `m/${index}`).join(",");
    expect((await client.get(`/account/usage?model_ids=${ids(100)}&search=${"s".repeat(200)}`)).status).toBe(200);

    for (const [query, param] of [
      ["from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from"],
      ["from=2026-01-02", "from"],
      ["from=0000-01-01T00:00:00Z", "from"],
      ["to=0000-12-31T23:59:59Z", "to"],
      ["from=0001-01-01T00:00:00%2B01:00", "from"],
      ["to=9999-12-31T23:59:59-01:00", "to"],
      ["before=0000-01-01T00:00:00Z", "before"],
      ["from=2026-01-02T00:00:00Z&days=3", "days"],
      ["statuses=failed", "statuses.0"],
      ["statuses=", "statuses"],
      ["modalities=text,moderation", "modalities.1"],
      ["min_cost_usd=-1", "min_cost_usd"],
      ["min_cost_usd=1e3", "min_cost_usd"],
      [`model_ids=${ids(101)}`, "model_ids"],
      [`search=${"s".repeat(201)}`, "search"],
      ["search=%20", "search"],
    ] as const) {
      const answer = await client.get(`/account/usage?${query}`);
      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.json<{ error: { param: string } }>().error.param, query).toBe(param);
    }
  });
});

describe("usage as CSV", () => {
  it("has a header row and the same columns", async () => {
    const key = await createKey(app, { name: "spreadsheet" });
    const id = await chat(key.key);

    const answer = await client.get("/account/key/usage?format=csv", { key: key.key });

    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8; header=present");
    expect(answer.headers.get("content-disposition")).toBe('attachment; filename="usage.csv"');
    const [header, row, end] = answer.text.split("\r\n");
    expect(header).toBe(COLUMNS.join(","));
    const cells = Object.fromEntries((row ?? "").split(",").map((cell, index) => [COLUMNS[index], cell]));
    expect(cells).toMatchObject({ id, api_key: "spreadsheet", input_text_tokens: "1000", cost_usd: "0.002", parent_request_id: "" });
    expect(end).toBe("");
  });

  for (const [name, cell] of [
    ["=cmd()", "'=cmd()"],
    ["+1", "'+1"],
    ["-1", "'-1"],
    ["@sum", "'@sum"],
    ['say "hi", you', '"say ""hi"", you"'],
    ['=a,"b"', `"'=a,""b"""`],
    ["plain=cmd()", "plain=cmd()"],
  ] as const) {
    it(`writes the key name ${name} as ${cell}`, async () => {
      const key = await createKey(app, { name });
      await createUsage(app, key.id, 1, new Date(Date.now() - 60_000));

      const answer = await client.get("/account/key/usage?format=csv", { key: key.key });

      expect(answer.status).toBe(200);
      expect(answer.text).toContain(`,${key.id},${cell},secret,`);
    });
  }

  it("continues over several pages of the database, up to the limit", async () => {
    const key = await createKey(app);
    const ids = await createUsage(app, key.id, 2_300, new Date(Date.now() - 60_000));
    const idsOf = (text: string) =>
      text
        .split("\r\n")
        .slice(1, -1)
        .map((row) => row.split(",")[0]);

    const all = await client.get("/account/key/usage?format=csv&limit=50000", { key: key.key });
    const some = await client.get("/account/key/usage?format=csv&limit=2001", { key: key.key });

    expect(idsOf(all.text)).toEqual(ids);
    expect(idsOf(some.text)).toEqual(ids.slice(0, 2001));
  });

  it("is only its header row without usage", async () => {
    const key = await createKey(app);

    expect((await client.get("/account/key/usage?format=csv", { key: key.key })).text).toBe(`${COLUMNS.join(",")}\r\n`);
  });

  it("sums days too", async () => {
    await chat(app.key);

    const answer = await client.get("/account/usage/daily?format=csv&days=1");

    expect(answer.headers.get("content-disposition")).toBe('attachment; filename="usage-daily.csv"');
    expect(answer.text).toMatch(/^date,model,meter_source,requests,cost_usd\r\n\d{4}-\d\d-\d\d,acme\/chat,pack,\d+,0\.\d+\r\n$/);
  });
});
