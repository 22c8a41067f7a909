/**
 * Does an account's history stay as quick to read as it grows? Two gateways on embedded databases, one with few usage rows, one with
 * many, asked the same things in turn (docs/performance.md).
 *
 * And how long do lists and summaries take, on both databases?
 *
 *   npm run bench:usage
 *   npm run bench:usage -- --small 20000 --large 2000000 --rounds 40
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { pino } from "pino";
import { Agent, request } from "undici";
import { type App, createApp } from "../src/app.js";
import { parseConfig } from "../src/config/config.js";
import { createApiKeyText } from "../src/lib/api-key-format.js";
import { openDatabase } from "../src/store/database.js";
import { POSTGRES_ABSENT, startPostgres } from "../test/support/postgres.js";
import { median, medianRatio, percentile } from "./support/statistics.js";
import { seedUsage } from "./support/usage-history.js";

/** The bound of each ratio. */
const RATIO_MAX = 3;
const CSV_ROWS = 50_000;
const DAY_MS = 24 * 60 * 60 * 1000;

const { values } = parseArgs({
  options: {
    small: { type: "string", default: "20000" },
    large: { type: "string", default: "2000000" },
    rounds: { type: "string", default: "40" },
    /** Of the lists and summaries, with 10 keys, 20 models and 90 days. */
    rows: { type: "string", default: "1000000" },
    only: { type: "string" },
  },
});
const rounds = Number(values.rounds);
const key = createApiKeyText("sk");
const log = pino({ level: "error" });
const agent = new Agent({ keepAliveTimeout: 60_000 });

interface History {
  readonly rows: number;
  readonly app: App;
  readonly url: string;
  readonly directory: string;
}

interface Outcome {
  readonly small: readonly number[];
  readonly large: readonly number[];
}

const halfWay = encodeURIComponent(new Date(Date.now() - 45 * DAY_MS).toISOString());
const QUESTIONS: Readonly<Record<string, string>> = {
  "newest 100 rows": "/account/usage?limit=100",
  "100 rows 45 days ago": `/account/usage?limit=100&days=90&before=${halfWay}`,
  "newest 1,000 rows": "/account/usage?limit=1000",
  "newest 100 rows of the key": "/account/key/usage?limit=100",
  "daily over 90 days": "/account/usage/daily?days=90",
};

/** In an order that no index has, and where no roll-up answers, of as much as is allowed. */
const [lastDays, lastHours] = [7, 24].map((count, index) =>
  new Date(Date.now() - count * (index === 0 ? DAY_MS : DAY_MS / 24)).toISOString(),
);
const SUMMED = "requests cost inputTokens outputTokens responseTimeMs { p50 p95 p99 } timeToFirstTokenMs { p50 p95 p99 } errorRate";
const quarter = `from: "${new Date(Date.now() - 90 * DAY_MS + 60_000).toISOString()}"`;
const GRAPHS: Readonly<Record<string, string>> = {
  "list, newest 50": "usage(first: 50) { nodes { id modelId cost } }",
  "list, 50 of one model, counted": `usage(first: 50, filter: { modelIds: ["acme/model-3"], ${quarter} }) { totalCount nodes { id cost } }`,
  "list, searched": `usage(first: 50, filter: { search: "model-1", ${quarter} }) { nodes { id cost } }`,
  "list, last 50 of a day": `usage(last: 50, filter: { from: "${lastHours}" }) { nodes { id cost } }`,
  "list, the dearest 50 of a week": `usage(first: 50, orderBy: { field: COST, direction: DESC }, filter: { from: "${lastDays}" }) { nodes { id cost } }`,
  "summary, 90 days in all": `usageSummary(filter: { ${quarter} }) { ${SUMMED} }`,
  "summary, 90 days by day": `usageSummary(filter: { ${quarter} }, groupBy: [DAY]) { from ${SUMMED} }`,
  "summary, 90 days by model": `usageSummary(filter: { ${quarter} }, groupBy: [MODEL]) { modelId ${SUMMED} }`,
  "summary, 90 days by key": `usageSummary(filter: { ${quarter} }, groupBy: [KEY]) { apiKeyId ${SUMMED} }`,
  "summary, 90 days of one model by key": `usageSummary(filter: { modelIds: ["acme/model-3"], ${quarter} }, groupBy: [KEY]) { apiKeyId ${SUMMED} }`,
  "summary, 90 days by key and model": `usageSummary(filter: { ${quarter} }, groupBy: [KEY, MODEL], first: 200) { apiKeyId modelId ${SUMMED} }`,
  "summary, a week by hour": `usageSummary(filter: { from: "${lastDays}" }, groupBy: [HOUR], first: 200) { from ${SUMMED} }`,
};

const histories: History[] = [];
try {
  if (values.only !== "growth") await reportGraphs();
  if (values.only !== "graphs") await reportGrowth();
} finally {
  await agent.close();
}

async function reportGraphs(): Promise<void> {
  const rows = Number(values.rows);
  const postgres = await startPostgres();
  const urls = [null, ...(postgres ? [postgres.url] : [])];
  if (!postgres) console.warn(POSTGRES_ABSENT);
  for (const databaseUrl of urls) {
    const history = await open(rows, { databaseUrl, keys: 10, models: 20 });
    console.log(`\n${databaseUrl === null ? "embedded" : "PostgreSQL"}, ${rows.toLocaleString("en")} rows, medians of ${rounds}\n`);
    for (const [question, selection] of Object.entries(GRAPHS)) {
      const times: number[] = [];
      for (let round = -3; round < rounds; round += 1) {
        const took = await time(history, "/graphql", { query: `{ me { ${selection} } }` });
        if (round >= 0) times.push(took);
      }
      console.log(`${question}: ${median(times).toFixed(1)} ms (p95 ${percentile(times, 95).toFixed(1)} ms)`);
    }
    await history.app.close();
    rmSync(history.directory, { recursive: true, force: true });
  }
  await postgres?.stop();
}

async function reportGrowth(): Promise<void> {
  try {
    const small = await open(Number(values.small));
    histories.push(small);
    const large = await open(Number(values.large));
    histories.push(large);
    console.log(`\n${rounds} rounds, medians, ${small.rows.toLocaleString("en")} and ${large.rows.toLocaleString("en")} rows\n`);
    for (const [question, path] of Object.entries(QUESTIONS)) report(question, await compare(small, large, path));
    await reportCsv(large);
  } finally {
    for (const { app, directory } of histories) {
      await app.close();
      rmSync(directory, { recursive: true, force: true });
    }
  }
}

/** A gateway whose owner has that many usage rows, spread evenly over the last 90 days. */
async function open(
  rows: number,
  { databaseUrl = null, ...shape }: { readonly databaseUrl?: string | null; readonly keys?: number; readonly models?: number } = {},
): Promise<History> {
  const directory = mkdtempSync(join(tmpdir(), "sluice-usage-"));
  const config = parseConfig({
    DATA_DIR: directory,
    PORT: "0",
    OWNER_API_KEY: key,
    LOG_LEVEL: "warn",
    ...(databaseUrl && { DATABASE_URL: databaseUrl }),
  });
  const first = await createApp(config, log);
  await first.close();
  const database = await openDatabase({ databaseUrl, dataDir: directory, log });
  const startedAt = Date.now();
  await seedUsage(database.pool, { rows, days: 90, ...shape });
  console.log(`wrote ${rows.toLocaleString("en")} rows in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  await database.close();
  const app = await createApp(config, log);
  const { port } = app.addresses;
  return { rows, app, directory, url: `http://127.0.0.1:${port}` };
}

async function compare(small: History, large: History, path: string): Promise<Outcome> {
  const outcome = { small: [] as number[], large: [] as number[] };
  for (let round = -3; round < rounds; round += 1) {
    const [first, second] = [await time(small, path), await time(large, path)];
    // The first rounds fill caches and compile.
    if (round < 0) continue;
    outcome.small.push(first);
    outcome.large.push(second);
  }
  return outcome;
}

/** Milliseconds until the last byte. */
async function time({ url }: History, path: string, body?: unknown): Promise<number> {
  const startedAt = performance.now();
  const answer = await request(url + path, {
    dispatcher: agent,
    headers: { authorization: `Bearer ${key}`, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
  });
  const { statusCode } = answer;
  const text = await answer.body.text();
  if (statusCode !== 200 || text.includes('"errors"')) throw new Error(`${path} answered ${statusCode}: ${text.slice(0, 500)}`);
  return performance.now() - startedAt;
}

function report(question: string, { small, large }: Outcome): void {
  const ratio = medianRatio(large, small);
  const figures = `${median(small).toFixed(1)} ms and ${median(large).toFixed(1)} ms (p95 ${percentile(large, 95).toFixed(1)} ms)`;
  console.log(`${question}: ${figures}, ratio ${ratio.toFixed(2)} (at most ${RATIO_MAX}: ${ratio <= RATIO_MAX ? "yes" : "NO"})`);
  if (!(ratio <= RATIO_MAX)) process.exitCode = 1;
}

/** A whole export, and what the process had in memory at most while it was written. */
async function reportCsv({ url }: History): Promise<void> {
  globalThis.gc?.();
  const before = process.memoryUsage.rss();
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 20);
  const startedAt = performance.now();
  const { body } = await request(`${url}/account/usage?format=csv&days=90&limit=${CSV_ROWS}`, {
    dispatcher: agent,
    headers: { authorization: `Bearer ${key}` },
  });
  let [bytes, lines] = [0, 0];
  for await (const chunk of body) {
    bytes += chunk.length;
    for (const byte of chunk as Buffer) if (byte === 10) lines += 1;
  }
  clearInterval(timer);
  const seconds = (performance.now() - startedAt) / 1000;
  const [size, grown] = [bytes / 1e6, (peak - before) / 1e6].map((megabytes) => megabytes.toFixed(1));
  console.log(`CSV of ${(lines - 1).toLocaleString("en")} rows: ${size} MB in ${seconds.toFixed(1)} s, memory grew by ${grown} MB at most`);
}
