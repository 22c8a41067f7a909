/**
 * Configuration: one schema over the environment, with a working default for every name (`.env.example` lists them). No other code reads
 * the environment; `main.ts` passes it in, and tests pass their own.
 */
import { resolve } from "node:path";
import * as z from "zod";
import { faultOfSecretKey } from "../lib/api-key-format.js";
import { findingsOf } from "../lib/issue-findings.js";
import { sayIssue } from "../lib/issue-words.js";
import { ownValue } from "../lib/own-values.js";
import type {
  EarningsSettings,
  GitHubSettings,
  PaymentsSetting,
  S3Settings,
  SalesSettings,
  SignInPace,
  Tier,
  TopUp,
} from "../lib/settings.js";
import { StartError } from "../lib/start-error.js";
import { type Addresses, isLoopbackHostname } from "../lib/urls.js";
import {
  CONTENDED_HOLD_WAIT_MS,
  DISK_FREE_BYTES_MIN_DEFAULT,
  GENERATION_TIMEOUT_MS,
  MEDIA_QUOTA_BYTES_DEFAULT,
  MEDIA_QUOTA_FILES_DEFAULT,
  PASSWORD_COST,
  PASSWORD_HELP,
  PASSWORD_HELP_CHARS_MAX,
  REQUEST_BODIES_BYTES_DEFAULT,
  REQUEST_BODIES_BYTES_MIN,
  REQUEST_LOG_DAYS_DEFAULT,
  REQUEST_LOG_DAYS_MAX,
  RESPONSES_STORED_DAYS_DEFAULT,
  RESPONSES_STORED_DAYS_MAX,
  SHUTDOWN_DELAY_MS_MAX,
  SIGN_IN_ATTEMPTS_PER_MINUTE,
  SIGN_IN_PACE,
  SLOW_READER_TIMEOUT_MS,
  TOP_UP_TEXT_CHARS_MAX,
  TOP_UP_URL_CHARS_MAX,
  UPSTREAM_CONNECT_TIMEOUT_MS,
  UPSTREAM_IDLE_TIMEOUT_MS,
  WEBSOCKET_PING_MS,
  WORKERS_MAX,
} from "../limits.js";
import { EARNING_VARIABLES, toEarnings } from "./earnings.js";
import { isMediaUrlAmbiguous, isMediaUrlWhereSessionsAre } from "./hosts.js";
import { paymentProblems, paymentsEnvironment, toSales } from "./payments.js";
import { RETIREMENT_VARIABLES } from "./retirements.js";
import { s3Environment, toS3 } from "./s3.js";
import { DEFAULT_TIERS, tiers } from "./tiers.js";
import { boolean, byteCount, credits, hosts, httpUrl, json, linkUrl, percent, share, url, wholeNumber, workerCount } from "./values.js";
import { toVendors, type VendorConfig, type VendorId, vendorEnvironment } from "./vendors.js";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The MCP servers that need a mapping (docs/spec/mcp.md#servers); `sluice` is this gateway itself. */
const MAPPED_MCP_SERVER_IDS = ["ffmpeg", "computer", "search", "integrations", "ada"] as const;
export type MappedMcpServerId = (typeof MAPPED_MCP_SERVER_IDS)[number];

export type IntegrationsConfig =
  | { readonly kind: "development" }
  | { readonly kind: "off" }
  | { readonly kind: "http"; readonly url: string; readonly key: string | null };

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

export interface Config {
  readonly host: string;
  /** 0: the system chooses; `addressesOf` then has the real one. */
  readonly port: number;
  /** Processes on the port. One with the embedded database, regardless of this value. */
  readonly workers: number;
  /** Absolute. */
  readonly dataDir: string;
  /** As set, without a trailing slash; `addressesOf` computes a null one. */
  readonly baseUrl: string | null;
  readonly authUrl: string | null;
  readonly mediaUrl: string | null;
  /** Null: the embedded database. */
  readonly databaseUrl: string | null;
  /** Address of the same database past a pooler. Null: no pooler. */
  readonly databaseDirectUrl: string | null;
  /** Null: counters and events in memory. */
  readonly redisUrl: string | null;
  /** Null: blobs in a folder. */
  readonly s3: S3Settings | null;
  /** Bytes of request bodies held at once. */
  readonly requestBodiesBytes: number;
  readonly mediaQuota: {
    /** Per account. */
    readonly bytesMax: number;
    readonly filesMax: number;
    /** Bytes that must stay free on the disk. */
    readonly freeBytesMin: number;
  };
  readonly ownerApiKey: string | null;
  /** Nanocredits in the owner's pack bucket on the first start. */
  readonly ownerCredits: bigint;
  /** Null: generated and stored under the data directory. */
  readonly encryptionKey: string | null;
  /** Accepted beside it while a rotation is under way; null: none. */
  readonly encryptionKeyPrevious: string | null;
  readonly modelsFile: string | null;
  /** False: no built-in models, also not as a stand-in for missing ones. */
  readonly hasSandboxModels: boolean;
  readonly vendors: Readonly<Record<VendorId, VendorConfig>>;
  /** Only this machine can send requests, so messages may address the operator. */
  readonly isForThisMachineOnly: boolean;
  /** Names and addresses without a port, in lower case, IPv6 without brackets. */
  readonly upstreamAllowHosts: readonly string[];
  readonly readsClientDocuments: boolean;
  readonly trustProxyHops: number;
  /** Between the signal and the stop: requests are served, and readiness is refused. */
  readonly shutdownDelayMs: number;
  /** False: the paths of src/fast are switched off in this process. */
  readonly hasFastPaths: boolean;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** Share of successful requests in the log; failed ones are always logged. Null: no access log. */
  readonly accessLog: number | null;
  /** Lines of the access log hold the client's address. */
  readonly accessLogAddress: boolean;
  /** Days that failed requests are kept for their accounts. 0: they are not kept. */
  readonly requestLogDays: number;
  /** Days that responses and conversations are stored. 0: they are not. */
  readonly storedResponsesDays: number;
  /** Metrics need the token. Without one they are open only where just this machine can connect. */
  readonly metrics: { readonly token: string | null; readonly isOpen: boolean };
  /** Sign-up: open to all, or only by operators. */
  /** The sign-in page's line for people who forgot their password. */
  readonly passwordHelp: string;
  readonly signUp: "open" | "closed";
  /** Its addresses are not from the environment. */
  readonly github: GitHubSettings | null;
  /** Not from the environment. */
  readonly signInAttemptsPerMinute: number;
  /** Not from the environment. */
  readonly signInPace: SignInPace;
  /** scrypt's N for passwords. Not from the environment. */
  readonly passwordCost: number;
  readonly mcpServers: Readonly<Partial<Record<MappedMcpServerId, string>>>;
  readonly mcpServerKeys: Readonly<Partial<Record<MappedMcpServerId, string>>>;
  /** A model's id or alias. */
  readonly moderationModel: string | null;
  readonly integrations: IntegrationsConfig;
  readonly tiers: readonly Tier[];
  /** Nanocredits that all tier buckets together may spend in a day (UTC); null: no cap. */
  readonly freeSpendPerDay: bigint | null;
  /** The fee for calls by vendor keys, in millionths of the model's price. */
  readonly vendorKeyFee: bigint;
  readonly earnings: EarningsSettings;
  /** Dates by the ids of models; null: never. */
  readonly retirements: ReadonlyMap<string, Date | null>;
  /** Null: the operator does not say how to get credits. */
  readonly topUp: TopUp | null;
  readonly payments: PaymentsSetting;
  readonly sales: SalesSettings;
  readonly rateLimits: {
    readonly anonymousRequestsPer10Seconds: number;
    readonly publishableRequestsPerMinute: number;
    /** Nanocredits. */
    readonly publishableCreditsPerHour: bigint;
  };
  /** The manifest of trusted GraphQL documents (null: the repository's own), and whether other documents are refused. */
  readonly persistedDocuments: { readonly file: string | null; readonly isOnly: boolean };
  readonly graphql: { readonly introspection: boolean; readonly graphiql: boolean };
  /** How long a hold waits for credits that other holds have. Not from the environment. */
  readonly contendedHoldWaitMs: number;
  /** Of WebSockets of responses; absent ones have the specified values. Read when a connection opens. Not from the environment. */
  readonly responsesTimes: { readonly totalMs?: number; readonly idleMs?: number };
  /** Of realtime sessions; absent ones have the specified values. Read when a session opens. Not from the environment. */
  readonly realtimeTimes: { readonly totalMs?: number; readonly idleMs?: number; readonly reportMs?: number };
  /** Milliseconds that the content cache may take; absent ones have its own values. Not from the environment. */
  readonly contentCacheTimes: { readonly findMs?: number; readonly storeMs?: number };
  /** Ping interval of WebSockets, and how long a peer may leave data unread. Not from the environment. */
  readonly webSockets: { readonly pingMs: number; readonly stalledMs: number };
  /** Timeouts of upstreams. Not from the environment. */
  readonly timeouts: { readonly connectMs: number; readonly idleMs: number; readonly totalMs: number };
  /** Reads a variable that another file names, such as `env:NAME` in MODELS_FILE. Null when unset or empty. */
  readonly readEnv: (name: string) => string | null;
}

/** Errors of the environment, a line per variable, without values, which may be secrets. */
export class ConfigError extends StartError {
  override readonly name: string = "ConfigError";

  constructor(problems: readonly string[]) {
    super(`The configuration is not valid:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
  }
}

const GITHUB_URLS = { webUrl: "https://github.com", apiUrl: "https://api.github.com" };

const text = z.string();
const environment = z.object({
  HOST: text.default("127.0.0.1"),
  PORT: wholeNumber(0, 65_535).default(4_000),
  WORKERS: workerCount(WORKERS_MAX).default(1),
  DATA_DIR: text.default("./data"),
  BASE_URL: httpUrl().optional(),
  AUTH_URL: httpUrl().optional(),
  MEDIA_URL: httpUrl().optional(),
  DATABASE_URL: url(/^postgres(ql)?:$/, "must be a postgresql:// URL").optional(),
  DATABASE_DIRECT_URL: url(/^postgres(ql)?:$/, "must be a postgresql:// URL").optional(),
  REDIS_URL: url(/^rediss?:$/, "must be a redis:// or rediss:// URL").optional(),
  ...s3Environment,
  MEDIA_QUOTA_BYTES: byteCount().default(MEDIA_QUOTA_BYTES_DEFAULT),
  MEDIA_QUOTA_FILES: wholeNumber(0, 999_999_999).default(MEDIA_QUOTA_FILES_DEFAULT),
  REQUEST_BODIES_BYTES: byteCount()
    .refine((bytes) => bytes >= REQUEST_BODIES_BYTES_MIN, `must be at least ${REQUEST_BODIES_BYTES_MIN}`)
    .default(REQUEST_BODIES_BYTES_DEFAULT),
  DISK_FREE_BYTES_MIN: byteCount().default(DISK_FREE_BYTES_MIN_DEFAULT),
  OWNER_API_KEY: text
    .refine((key) => faultOfSecretKey(key) === null, {
      error: ({ input }) => `${faultOfSecretKey(String(input))}. \`npm run -s sluice -- key generate\` prints a good one`,
    })
    .optional(),
  OWNER_CREDITS: credits().default(100n * 10n ** 9n),
  ENCRYPTION_KEY: text.min(16, "must have at least 16 characters").optional(),
  ENCRYPTION_KEY_PREVIOUS: text.min(16, "must have at least 16 characters").optional(),
  MODELS_FILE: text.optional(),
  SANDBOX_MODELS: z.enum(["on", "off"]).default("on"),
  UPSTREAM_ALLOW_HOSTS: hosts().default([]),
  CLIENT_ID_DOCUMENTS: z.enum(["on", "off"]).default("on"),
  TRUST_PROXY: wholeNumber(0, 100).default(0),
  SHUTDOWN_DELAY_MS: wholeNumber(0, SHUTDOWN_DELAY_MS_MAX).default(0),
  FAST_PATHS: z.enum(["on", "off"]).default("on"),
  LOG_LEVEL: z.enum(LOG_LEVELS).default("info"),
  ACCESS_LOG: share().default(1),
  ACCESS_LOG_ADDRESS: z.enum(["on", "off"]).default("off"),
  REQUEST_LOG_DAYS: wholeNumber(0, REQUEST_LOG_DAYS_MAX).default(REQUEST_LOG_DAYS_DEFAULT),
  RESPONSES_STORED_DAYS: wholeNumber(0, RESPONSES_STORED_DAYS_MAX).default(RESPONSES_STORED_DAYS_DEFAULT),
  METRICS_TOKEN: text.regex(/^[\x21-\x7e]{16,}$/, "must have at least 16 characters, without spaces").optional(),
  SIGN_UP: z.enum(["open", "closed"]).optional(),
  PASSWORD_HELP: z.string().max(PASSWORD_HELP_CHARS_MAX).optional(),
  GITHUB_CLIENT_ID: text.optional(),
  GITHUB_CLIENT_SECRET: text.optional(),
  MCP_SERVERS: json(z.partialRecord(z.enum(MAPPED_MCP_SERVER_IDS), httpUrl())).default({}),
  MCP_SERVER_KEYS: json(z.partialRecord(z.enum(MAPPED_MCP_SERVER_IDS), z.string().regex(/^[\x21-\x7e]+$/, "must be a key"))).default({}),
  MODERATION_MODEL: text.optional(),
  INTEGRATIONS_BROKER_URL: z.union([z.literal("off"), httpUrl()], 'must be "off" or an http or https URL').optional(),
  INTEGRATIONS_BROKER_KEY: text.optional(),
  TIERS: json(tiers()).prefault(DEFAULT_TIERS),
  FREE_SPEND_PER_DAY: credits().optional(),
  VENDOR_KEY_FEE_PERCENT: percent().default(0n),
  ...EARNING_VARIABLES,
  ...RETIREMENT_VARIABLES,
  CREDITS_TEXT: text.max(TOP_UP_TEXT_CHARS_MAX, `must have at most ${TOP_UP_TEXT_CHARS_MAX} characters`).optional(),
  CREDITS_URL: linkUrl(TOP_UP_URL_CHARS_MAX).optional(),
  ...paymentsEnvironment,
  ANONYMOUS_REQUESTS_PER_10_SECONDS: wholeNumber(1, 1_000_000).default(100),
  PUBLISHABLE_REQUESTS_PER_MINUTE: wholeNumber(1, 1_000_000).default(60),
  PUBLISHABLE_CREDITS_PER_HOUR: credits().default(10n ** 9n),
  GRAPHQL_INTROSPECTION: boolean().optional(),
  GRAPHIQL: boolean().optional(),
  GRAPHQL_PERSISTED_ONLY: boolean().default(false),
  GRAPHQL_PERSISTED_FILE: text.optional(),
  ...vendorEnvironment,
});

type Values = z.infer<typeof environment>;

/** All variables, in the order of `.env.example`. */
export const ENVIRONMENT_NAMES = Object.keys(environment.shape) as readonly (keyof Values)[];

/** Throws a ConfigError that names every bad variable. Empty values count as unset. */
export function parseConfig(env: Environment): Config {
  const readEnv = (name: string): string | null => ownValue(env, name) || null;
  const stated = Object.fromEntries(ENVIRONMENT_NAMES.map((name) => [name, readEnv(name)]).filter(([, value]) => value !== null));
  const parsed = environment.safeParse(stated, { error: sayIssue });
  if (!parsed.success) throw new ConfigError(findingsOf(parsed.error, stated).found.map(({ path, message }) => `${path}: ${message}`));
  const problems = missingPartners(parsed.data);
  if (problems.length > 0) throw new ConfigError(problems);
  return toConfig(parsed.data, readEnv);
}

/** Addresses of a gateway that listens on `port`, with defaults for those that are not set. */
export function addressesOf(config: Pick<Config, "baseUrl" | "authUrl" | "mediaUrl">, port: number): Addresses {
  const baseUrl = config.baseUrl ?? `http://localhost:${port}`;
  return { baseUrl, authUrl: config.authUrl ?? baseUrl, mediaUrl: config.mediaUrl ?? `${baseUrl}/media` };
}

function toConfig(values: Values, readEnv: Config["readEnv"]): Config {
  const isLocal = isForThisMachineOnly(values);
  return {
    host: values.HOST,
    port: values.PORT,
    workers: values.WORKERS,
    dataDir: resolve(values.DATA_DIR),
    baseUrl: values.BASE_URL ?? null,
    authUrl: values.AUTH_URL ?? null,
    mediaUrl: values.MEDIA_URL ?? null,
    databaseUrl: values.DATABASE_URL ?? null,
    databaseDirectUrl: values.DATABASE_DIRECT_URL ?? null,
    redisUrl: values.REDIS_URL ?? null,
    s3: toS3(values),
    requestBodiesBytes: values.REQUEST_BODIES_BYTES,
    mediaQuota: { bytesMax: values.MEDIA_QUOTA_BYTES, filesMax: values.MEDIA_QUOTA_FILES, freeBytesMin: values.DISK_FREE_BYTES_MIN },
    ownerApiKey: values.OWNER_API_KEY ?? null,
    ownerCredits: values.OWNER_CREDITS,
    encryptionKey: values.ENCRYPTION_KEY ?? null,
    encryptionKeyPrevious: values.ENCRYPTION_KEY_PREVIOUS ?? null,
    modelsFile: values.MODELS_FILE ?? null,
    hasSandboxModels: values.SANDBOX_MODELS === "on",
    vendors: toVendors(values, readEnv),
    isForThisMachineOnly: isLocal,
    upstreamAllowHosts: values.UPSTREAM_ALLOW_HOSTS,
    readsClientDocuments: values.CLIENT_ID_DOCUMENTS === "on",
    trustProxyHops: values.TRUST_PROXY,
    shutdownDelayMs: values.SHUTDOWN_DELAY_MS,
    hasFastPaths: values.FAST_PATHS === "on",
    logLevel: values.LOG_LEVEL,
    accessLog: values.ACCESS_LOG,
    accessLogAddress: values.ACCESS_LOG_ADDRESS === "on",
    requestLogDays: values.REQUEST_LOG_DAYS,
    storedResponsesDays: values.RESPONSES_STORED_DAYS,
    metrics: { token: values.METRICS_TOKEN ?? null, isOpen: values.METRICS_TOKEN === undefined && isLocal },
    github:
      values.GITHUB_CLIENT_ID && values.GITHUB_CLIENT_SECRET
        ? { clientId: values.GITHUB_CLIENT_ID, clientSecret: values.GITHUB_CLIENT_SECRET, ...GITHUB_URLS }
        : null,
    // Unspecified: each account gets credits every day, so public sign-up must be enabled by the operator.
    passwordHelp: values.PASSWORD_HELP ?? PASSWORD_HELP,
    signUp: values.SIGN_UP ?? (isLocal ? "open" : "closed"),
    signInAttemptsPerMinute: SIGN_IN_ATTEMPTS_PER_MINUTE,
    signInPace: SIGN_IN_PACE,
    passwordCost: PASSWORD_COST,
    mcpServers: values.MCP_SERVERS,
    mcpServerKeys: values.MCP_SERVER_KEYS,
    moderationModel: values.MODERATION_MODEL ?? null,
    integrations: toIntegrations(values),
    tiers: values.TIERS,
    freeSpendPerDay: values.FREE_SPEND_PER_DAY ?? null,
    vendorKeyFee: values.VENDOR_KEY_FEE_PERCENT,
    earnings: toEarnings(values),
    retirements: values.MODEL_RETIREMENTS,
    topUp: toTopUp(values),
    payments: values.PAYMENTS ?? (isLocal ? "development" : "off"),
    sales: toSales(values),
    rateLimits: {
      anonymousRequestsPer10Seconds: values.ANONYMOUS_REQUESTS_PER_10_SECONDS,
      publishableRequestsPerMinute: values.PUBLISHABLE_REQUESTS_PER_MINUTE,
      publishableCreditsPerHour: values.PUBLISHABLE_CREDITS_PER_HOUR,
    },
    // Unspecified: on where only this machine can connect, off otherwise by default.
    persistedDocuments: { file: values.GRAPHQL_PERSISTED_FILE ?? null, isOnly: values.GRAPHQL_PERSISTED_ONLY },
    graphql: { introspection: values.GRAPHQL_INTROSPECTION ?? isLocal, graphiql: values.GRAPHIQL ?? isLocal },
    contendedHoldWaitMs: CONTENDED_HOLD_WAIT_MS,
    responsesTimes: {},
    realtimeTimes: {},
    contentCacheTimes: {},
    webSockets: { pingMs: WEBSOCKET_PING_MS, stalledMs: SLOW_READER_TIMEOUT_MS },
    timeouts: { connectMs: UPSTREAM_CONNECT_TIMEOUT_MS, idleMs: UPSTREAM_IDLE_TIMEOUT_MS, totalMs: GENERATION_TIMEOUT_MS },
    readEnv,
  };
}

/** Listens on and is addressed by the loopback only, without a proxy that could forward others. */
function isForThisMachineOnly({ HOST, BASE_URL, AUTH_URL, MEDIA_URL, TRUST_PROXY }: Values): boolean {
  const hosts = [BASE_URL, AUTH_URL, MEDIA_URL].flatMap((address) => (address === undefined ? [] : [new URL(address).hostname]));
  return TRUST_PROXY === 0 && [HOST, ...hosts].every(isLoopbackHostname);
}

/** Variables that need each other. */
function missingPartners(values: Values): string[] {
  const problems: string[] = [];
  const needs = (name: keyof Values, partner: keyof Values) => {
    if (values[name] !== undefined && values[partner] === undefined) problems.push(`${partner}: is needed when ${name} is set`);
  };
  needs("DATABASE_DIRECT_URL", "DATABASE_URL");
  needs("S3_ENDPOINT", "S3_BUCKET");
  needs("S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY");
  needs("S3_SECRET_ACCESS_KEY", "S3_ACCESS_KEY_ID");
  needs("GITHUB_CLIENT_ID", "GITHUB_CLIENT_SECRET");
  needs("GITHUB_CLIENT_SECRET", "GITHUB_CLIENT_ID");
  for (const id of Object.keys(values.MCP_SERVER_KEYS)) {
    if (!Object.hasOwn(values.MCP_SERVERS, id)) problems.push(`MCP_SERVERS: must say where ${id} is, for which MCP_SERVER_KEYS has a key`);
  }
  if (isMediaUrlAmbiguous(values.MEDIA_URL, values.BASE_URL)) problems.push("MEDIA_URL: must have a path, or another host than BASE_URL");
  const urls = { mediaUrl: values.MEDIA_URL, authUrl: values.AUTH_URL, baseUrl: values.BASE_URL };
  if (isMediaUrlWhereSessionsAre(urls)) problems.push("MEDIA_URL: must have another host than AUTH_URL, where people are signed in");
  const isAllowed = (host: string) => values.UPSTREAM_ALLOW_HOSTS.includes(host.replace(/^\[(.*)\]$/, "$1"));
  return [...problems, ...paymentProblems(values, isForThisMachineOnly(values), isAllowed)];
}

function toTopUp({ CREDITS_TEXT: text, CREDITS_URL: url }: Values): Config["topUp"] {
  return text === undefined && url === undefined ? null : { text: text ?? null, url: url ?? null };
}

function toIntegrations(values: Values): IntegrationsConfig {
  const url = values.INTEGRATIONS_BROKER_URL;
  if (url === undefined) return { kind: "development" };
  if (url === "off") return { kind: "off" };
  return { kind: "http", url, key: values.INTEGRATIONS_BROKER_KEY ?? null };
}
