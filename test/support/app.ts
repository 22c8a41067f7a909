/**
 * A whole gateway for a test: real database, real HTTP server, real upstream on another port. Each has a database of its
 * own, so files run side by side; within a file, tests share one app and use accounts and keys of their own.
 */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { type App, createApp } from "../../src/app.js";
import { type Config, parseConfig } from "../../src/config/config.js";
import type { Clock } from "../../src/lib/clock.js";
import type { Infrastructure } from "../../src/services/composition/infrastructure.js";
import type { Services } from "../../src/services/services.js";
import type { Database } from "../../src/store/database.js";
import { createEmptyDir, createTestDataDir } from "./database.js";
import { type FakeUpstream, startFakeUpstream } from "./fake-upstream.js";
import { createSuiteDatabase } from "./suite-server.js";

/** Preset, so that a restart on the same directory has it too. */
export const OWNER_KEY = "sk_OwnerOfAllTests0123456789abcdefghijkl1q7bOw";

/** Tests sign in more often than a person does, and their passwords are no secrets. */
const ROOMY = {
  signInAttemptsPerMinute: 1_000,
  passwordCost: 2 ** 10,
  // A busy machine takes longer than a request would wait.
  contentCacheTimes: { findMs: 60_000, storeMs: 60_000 },
} as const;

export interface TestApp {
  readonly baseUrl: string;
  readonly wsUrl: string;
  /** The owner's: every permission, an operator, a pack of 100 credits. */
  readonly key: string;
  readonly services: Services;
  /** What the services stand on: the database, events, files. */
  readonly infrastructure: Infrastructure;
  readonly database: Database;
  readonly upstream: FakeUpstream;
  readonly dataDir: string;
  /** Each JSON line that was logged, parsed. */
  readonly logs: readonly Record<string, unknown>[];
  readonly app: App;
  close(): Promise<void>;
}

export interface TestAppOptions {
  readonly config?: Partial<Config>;
  /** Further entries of the models file, beside `testModels`. */
  readonly models?: readonly object[];
  /** Further upstreams of the models file, beside `acme`. */
  readonly upstreams?: readonly object[];
  /** On the embedded database, in every kind of suite. */
  readonly isEmbedded?: boolean;
  /** A directory of an earlier, embedded test app: a restart. It is left in place when the app closes. */
  readonly dataDir?: string;
  readonly upstream?: FakeUpstream;
  /** One that a test moves. */
  readonly clock?: Clock;
}

/** Models of the upstream `acme`. Prices in credits per token. `acme/chat` has a price of its own for every kind, no two alike. */
export function testModels(): object[] {
  const acme = (id: string, more: object) => ({
    id,
    modality: "text",
    upstream: "acme",
    upstreamModel: `upstream-${id.slice(5)}`,
    title: id,
    ...more,
  });
  const prices = {
    promptTextPrice: "0.000001",
    promptCachedPrice: "0.0000005",
    promptCacheWritePrice: "0.00000125",
    promptAudioPrice: "0.00001",
    promptImagePrice: "0.000003",
    completionTextPrice: "0.000002",
    completionReasoningPrice: "0.000004",
    completionAudioPrice: "0.00002",
  };
  return [
    acme("acme/chat", { aliases: ["chat"], default: true, capabilities: ["tools"], contextLength: 128000, prices }),
    acme("acme/chat-b", { prices }),
    acme("acme/with-fallback", { prices, fallbacks: ["acme/chat-b"] }),
    acme("acme/free", { prices: { promptTextPrice: "0", completionTextPrice: "0" } }),
    acme("acme/paid-only", { prices, paidOnly: true }),
    // One credit for each output token: sums that are easy to see in a budget.
    acme("acme/image", { modality: "image", default: true, variations: true, prices: { completionImagePrice: "0.04" } }),
    acme("acme/image-tokens", {
      modality: "image",
      variations: true,
      imagePricing: "tokens",
      prices: { promptTextPrice: "0.000005", promptImagePrice: "0.00001", completionImagePrice: "0.00004" },
    }),
    acme("acme/image-with-fallback", {
      modality: "image",
      variations: true,
      prices: { completionImagePrice: "0.04" },
      fallbacks: ["acme/image"],
    }),
    acme("acme/video", { modality: "video", default: true, prices: { completionVideoPrice: "0.1" }, pricedFields: { size: { "*": {} } } }),
    acme("acme/speech", { modality: "speech", default: true, prices: { completionAudioPrice: "0.000015" } }),
    acme("acme/music", { modality: "music", default: true, prices: { completionAudioPrice: "0.01" } }),
    acme("acme/transcription", { modality: "transcription", default: true, prices: { promptAudioPrice: "0.0001" } }),
    acme("acme/embedding", { modality: "embedding", default: true, prices: { promptTextPrice: "0.00000002" } }),
    acme("acme/rerank", { modality: "rerank", default: true, prices: { completionTextPrice: "0.002" } }),
    acme("acme/moderation", { modality: "moderation", default: true, prices: { promptTextPrice: "0" } }),
    acme("acme/realtime", { modality: "realtime", default: true, prices }),
    acme("acme/dear", { prices: { promptTextPrice: "0", completionTextPrice: "1" } }),
  ];
}

export async function createTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const upstream = options.upstream ?? (await startFakeUpstream());
  const { dataDir, databaseUrl, remove } = await placeOf(options);
  const modelsFile = join(dataDir, "models.json");
  await writeFile(modelsFile, JSON.stringify(modelsFileContent(upstream, options.models ?? [], options.upstreams ?? [])));
  const logs: Record<string, unknown>[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void logs.push(JSON.parse(line)) });
  const env = { PORT: "0", DATA_DIR: dataDir, MODELS_FILE: modelsFile, OWNER_API_KEY: OWNER_KEY, ACME_KEY: "acme-secret-key" };
  const app = await createApp({ ...parseConfig(env), ...ROOMY, databaseUrl, ...options.config }, log, options.clock);
  const { port } = app.addresses;
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}/graphql`,
    key: OWNER_KEY,
    services: app.services,
    infrastructure: app.infrastructure,
    database: app.infrastructure.database,
    upstream,
    dataDir,
    logs,
    app,
    close: async () => {
      await app.close();
      if (!options.upstream) await upstream.close();
      await remove();
    },
  };
}

/** A directory that outlives the app holds its embedded database; one for this app alone has nothing to hold. */
async function placeOf({
  dataDir,
  config,
  isEmbedded,
}: TestAppOptions): Promise<{ dataDir: string; databaseUrl: string | null; remove(): Promise<void> }> {
  if (dataDir !== undefined) return { dataDir, databaseUrl: null, remove: async () => undefined };
  const suite = isEmbedded || config?.databaseUrl !== undefined ? null : await createSuiteDatabase();
  if (!suite) return { ...(await createTestDataDir()), databaseUrl: null };
  const directory = await createEmptyDir();
  const remove = async () => {
    await Promise.all([suite.drop(), rm(directory, { recursive: true, force: true })]);
  };
  return { dataDir: directory, databaseUrl: suite.url, remove };
}

function modelsFileContent(upstream: FakeUpstream, more: readonly object[], upstreams: readonly object[]): object {
  return {
    upstreams: [{ id: "acme", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "env:ACME_KEY" }, ...upstreams],
    models: [...testModels(), ...more],
  };
}
