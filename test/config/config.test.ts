import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { describe, expect, it } from "vitest";
import { addressesOf, ConfigError, ENVIRONMENT_NAMES, parseConfig } from "../../src/config/config.js";
import { addEnvFile } from "../../src/config/env-file.js";
import { findMisspelt, findUnread } from "../../src/config/names.js";
import { createApiKeyText } from "../../src/lib/api-key-format.js";

function errorOf(env: Record<string, string>): string {
  try {
    parseConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // zod's own words, which name its types instead of the operator's.
    expect(error.message).not.toMatch(/Invalid|Unrecognized|undefined|received|another type/);
    return error.message;
  }
  throw new Error("The configuration was accepted.");
}

describe("parseConfig", () => {
  it("has a working default for every variable", () => {
    const config = parseConfig({});

    expect(config).toMatchObject({
      host: "127.0.0.1",
      port: 4000,
      dataDir: resolve("data"),
      baseUrl: null,
      databaseUrl: null,
      databaseDirectUrl: null,
      redisUrl: null,
      s3: null,
      mediaQuota: { bytesMax: 5 * 2 ** 30, filesMax: 10_000, freeBytesMin: 512 * 2 ** 20 },
      ownerApiKey: null,
      ownerCredits: 100_000_000_000n,
      encryptionKey: null,
      modelsFile: null,
      hasSandboxModels: true,
      upstreamAllowHosts: [],
      trustProxyHops: 0,
      shutdownDelayMs: 0,
      hasFastPaths: true,
      logLevel: "info",
      accessLog: 1,
      metrics: { token: null, isOpen: true },
      signUp: "open",
      github: null,
      mcpServers: {},
      mcpServerKeys: {},
      moderationModel: null,
      integrations: { kind: "development" },
      tiers: [
        { name: "free", nanocredits: 1_000_000_000n, period: "day" },
        { name: "plus", nanocredits: 5_000_000_000n, period: "day" },
        { name: "pro", nanocredits: 20_000_000_000n, period: "day" },
      ],
      rateLimits: { anonymousRequestsPer10Seconds: 100, publishableRequestsPerMinute: 60, publishableCreditsPerHour: 1_000_000_000n },
      graphql: { introspection: true, graphiql: true },
      timeouts: { connectMs: 3_000, idleMs: 60_000, totalMs: 300_000 },
    });
    expect(Object.values(config.vendors).every(({ apiKey, baseUrl }) => apiKey === null && baseUrl === null)).toBe(true);
  });

  it.each<[string, Record<string, string>, "open" | "closed"]>([
    ["that just this machine reaches", { HOST: "::1", BASE_URL: "http://localhost:8080", AUTH_URL: "http://127.0.0.1:8080" }, "open"],
    ["that listens to every network", { HOST: "0.0.0.0" }, "closed"],
    ["that has an address of the world", { BASE_URL: "https://ai.example" }, "closed"],
    ["whose people sign in at one", { AUTH_URL: "https://sign-in.ai.example" }, "closed"],
    ["whose media are at one", { MEDIA_URL: "https://media.ai.example" }, "closed"],
    ["behind a proxy", { TRUST_PROXY: "1" }, "closed"],
    ["that says otherwise", { HOST: "0.0.0.0", TRUST_PROXY: "1", SIGN_UP: "open" }, "open"],
    ["for this machine that says otherwise", { SIGN_UP: "closed" }, "closed"],
  ])("a gateway %s", (_which, env, signUp) => {
    const { graphql, metrics, signUp: parsed } = parseConfig(env);

    expect(parsed).toBe(signUp);
    expect(parseConfig({ ...env, METRICS_TOKEN: "0123456789abcdef" }).metrics).toEqual({ token: "0123456789abcdef", isOpen: false });
    // Where strangers may make no account by default, they are shown no more than they need either.
    if (env.SIGN_UP !== undefined) return;
    expect(graphql).toEqual({ introspection: signUp === "open", graphiql: signUp === "open" });
    expect(metrics).toEqual({ token: null, isOpen: signUp === "open" });
  });

  it.each([
    ["on", 1],
    ["off", null],
    ["0", 0],
    ["0.25", 0.25],
    ["1.0", 1],
  ])("takes ACCESS_LOG=%s", (value, expected) => {
    expect(parseConfig({ ACCESS_LOG: value }).accessLog).toBe(expected);
  });

  it.each([
    ["1", 1],
    ["64", 64],
    ["auto", Math.min(64, availableParallelism())],
  ])("takes WORKERS=%s", (value, expected) => {
    expect(parseConfig({ WORKERS: value }).workers).toBe(expected);
  });

  it.each(["0", "65", "-1", "1.5", "many", "Auto", "1e1"])("stops at WORKERS=%s with the allowed values", (value) => {
    expect(errorOf({ WORKERS: value })).toBe(
      "The configuration is not valid:\n  WORKERS: must be a whole number from 1 to 64, or auto for one on each processor; leave it unset to run one process",
    );
  });

  it("takes empty values for unset ones", () => {
    const empty = Object.fromEntries(ENVIRONMENT_NAMES.map((name) => [name, ""]));

    const { readEnv: _ofEmpty, ...config } = parseConfig(empty);

    const { readEnv: _ofNothing, ...defaults } = parseConfig({});
    expect(config).toEqual(defaults);
  });

  it("reads stated values", () => {
    const ownerApiKey = createApiKeyText("sk");

    const config = parseConfig({
      HOST: "0.0.0.0",
      PORT: "0",
      BASE_URL: "https://ai.example/",
      S3_BUCKET: "media",
      S3_ENDPOINT: "http://localhost:9000",
      S3_ACCESS_KEY_ID: "id",
      S3_SECRET_ACCESS_KEY: "secret",
      OWNER_API_KEY: ownerApiKey,
      OWNER_CREDITS: "0.000000001",
      UPSTREAM_ALLOW_HOSTS: " Acme.example , 10.0.0.1,[::1],",
      TRUST_PROXY: "2",
      GITHUB_CLIENT_ID: "gh",
      GITHUB_CLIENT_SECRET: "hg",
      MCP_SERVERS: '{"search":"https://search.example/mcp"}',
      INTEGRATIONS_BROKER_URL: "https://broker.example",
      INTEGRATIONS_BROKER_KEY: "bk",
      TIERS: '[{"name":"free","credits":0.0000001,"period":"hour"},{"name":"gift","credits":"2"}]',
      FREE_SPEND_PER_DAY: "2.5",
      VENDOR_KEY_FEE_PERCENT: "2.5",
      COMMUNITY_EARNINGS_PERCENT: "60",
      APP_MARGIN_MAX_PERCENT: "25",
      MODEL_RETIREMENTS: "openai/gpt-5.5=2027-01-31, mistral/mistral-large=never",
      CREDITS_TEXT: "Ask the platform team.",
      CREDITS_URL: "https://pay.example/credits?from=gateway#now",
      GRAPHIQL: "1",
      OPENAI_API_KEY: "oa",
      OPENAI_BASE_URL: "http://127.0.0.1:9/v1/",
      OLLAMA_BASE_URL: "http://127.0.0.1:11434",
    });

    expect(config).toMatchObject({
      host: "0.0.0.0",
      port: 0,
      baseUrl: "https://ai.example",
      s3: {
        bucket: "media",
        endpoint: "http://localhost:9000",
        region: "us-east-1",
        credentials: { accessKeyId: "id", secretAccessKey: "secret" },
      },
      ownerApiKey,
      ownerCredits: 1n,
      upstreamAllowHosts: ["acme.example", "10.0.0.1", "::1"],
      trustProxyHops: 2,
      github: { clientId: "gh", clientSecret: "hg" },
      mcpServers: { search: "https://search.example/mcp" },
      integrations: { kind: "http", url: "https://broker.example", key: "bk" },
      tiers: [
        { name: "free", nanocredits: 100n, period: "hour" },
        { name: "gift", nanocredits: 2_000_000_000n, period: null },
      ],
      freeSpendPerDay: 2_500_000_000n,
      vendorKeyFee: 25_000n,
      earnings: { communityShare: 600_000n, marginPercentMax: 25 },
      retirements: new Map([
        ["openai/gpt-5.5", new Date("2027-01-31")],
        ["mistral/mistral-large", null],
      ]),
      topUp: { text: "Ask the platform team.", url: "https://pay.example/credits?from=gateway#now" },
      graphql: { introspection: false, graphiql: true },
      vendors: {
        openai: { apiKey: "oa", baseUrl: "http://127.0.0.1:9/v1" },
        ollama: { apiKey: null, baseUrl: "http://127.0.0.1:11434" },
      },
    });
  });

  it.each([
    ["PORT", "65536"],
    ["PORT", "-1"],
    ["PORT", "4000.5"],
    ["PORT", "http"],
    ["BASE_URL", "ai.example"],
    ["BASE_URL", "ftp://ai.example"],
    ["AUTH_URL", "https://user:password@ai.example"],
    ["MEDIA_URL", "https://ai.example/?a=b"],
    ["DATABASE_URL", "mysql://localhost/db"],
    ["REDIS_URL", "http://localhost"],
    ["OWNER_API_KEY", "sk_short"],
    ["OWNER_API_KEY", createApiKeyText("pk")],
    ["OWNER_CREDITS", "-1"],
    ["OWNER_CREDITS", "1e3"],
    ["OWNER_CREDITS", "0.0000000001"],
    ["OWNER_CREDITS", "1000000001"],
    ["ENCRYPTION_KEY", "fifteen chars.."],
    ["UPSTREAM_ALLOW_HOSTS", "a.example,10.0.0.1:8080"],
    ["UPSTREAM_ALLOW_HOSTS", "https://a.example"],
    ["TRUST_PROXY", "true"],
    ["LOG_LEVEL", "loud"],
    ["MCP_SERVERS", "{"],
    ["MCP_SERVERS", '{"unknown":"https://a.example"}'],
    ["MCP_SERVERS", '{"search":"not a URL"}'],
    ["INTEGRATIONS_BROKER_URL", "on"],
    ["TIERS", "[]"],
    ["FREE_SPEND_PER_DAY", "-1"],
    ["VENDOR_KEY_FEE_PERCENT", "-1"],
    ["VENDOR_KEY_FEE_PERCENT", "100.0001"],
    ["VENDOR_KEY_FEE_PERCENT", "0.00001"],
    ["VENDOR_KEY_FEE_PERCENT", "1e1"],
    ["COMMUNITY_EARNINGS_PERCENT", "101"],
    ["APP_MARGIN_MAX_PERCENT", "51"],
    ["APP_MARGIN_MAX_PERCENT", "2.5"],
    ["MODEL_RETIREMENTS", "openai/gpt-5.5"],
    ["MODEL_RETIREMENTS", "openai/gpt-5.5=2027-02-30"],
    ["MODEL_RETIREMENTS", "openai/gpt-5.5=soon"],
    ["CREDITS_TEXT", "a".repeat(301)],
    ["PAYMENTS", "on"],
    ["CREDITS_URL", "javascript:alert(1)"],
    ["CREDITS_URL", "https://user:password@pay.example"],
    ["CREDITS_URL", `https://pay.example/${"a".repeat(981)}`],
    ["TIERS", '[{"name":"free","credits":1,"period":"year"}]'],
    ["TIERS", '[{"name":"free","credits":1},{"name":"free","credits":2}]'],
    ["PUBLISHABLE_REQUESTS_PER_MINUTE", "0"],
    ["GRAPHIQL", "yes"],
    ["OLLAMA_BASE_URL", "localhost:11434"],
  ])("refuses %s=%s by name", (name, value) => {
    expect(errorOf({ [name]: value })).toMatch(new RegExp(`^The configuration is not valid:\\n  ${name}[.:]`));
  });

  it("names every bad variable, on separate lines", () => {
    const message = errorOf({ PORT: "x", LOG_LEVEL: "loud", GRAPHIQL: "maybe", ACCESS_LOG: "1.5", METRICS_TOKEN: "too short" });

    expect(message.split("\n").map((line) => line.trim().split(":")[0])).toEqual([
      "The configuration is not valid",
      "PORT",
      "LOG_LEVEL",
      "ACCESS_LOG",
      "METRICS_TOKEN",
      "GRAPHIQL",
    ]);
  });

  it("never repeats a value, which may be a secret", () => {
    expect(errorOf({ OWNER_API_KEY: "sk_hunter2", ENCRYPTION_KEY: "hunter2", DATABASE_URL: "hunter2://hunter2" })).not.toContain("hunter2");
  });

  it.each([
    ["GITHUB_CLIENT_ID", "GITHUB_CLIENT_SECRET"],
    ["GITHUB_CLIENT_SECRET", "GITHUB_CLIENT_ID"],
    ["S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY"],
    ["S3_SECRET_ACCESS_KEY", "S3_ACCESS_KEY_ID"],
  ])("refuses %s without %s", (name, partner) => {
    expect(errorOf({ [name]: "x" })).toContain(`${partner}: is needed when ${name} is set`);
  });

  it("refuses a key for an MCP server without an address, and does not repeat it", () => {
    const error = errorOf({ MCP_SERVERS: '{"ada":"http://localhost:1/mcp"}', MCP_SERVER_KEYS: '{"ada":"fine","search":"hunter2"}' });

    expect(error).toContain("MCP_SERVERS: must say where search is");
    expect(error).not.toContain("hunter2");
  });

  it("refuses an S3 address without a bucket", () => {
    expect(errorOf({ S3_ENDPOINT: "http://localhost:9000" })).toContain("S3_BUCKET: is needed when S3_ENDPOINT is set");
  });

  it.each([
    ["TIERS", '[{"name":"a"}]', "TIERS.0.credits: is required"],
    ["TIERS", '[{"name":"a","credits":1,"refill":1}]', "TIERS.0.refill: is not known here; the closest that are: "],
    ["MCP_SERVERS", '{"serach":"http://127.0.0.1"}', "MCP_SERVERS.serach: is not known here; the closest that are: search"],
    ["MCP_SERVERS", "[]", "MCP_SERVERS: expected an object"],
  ])("names the fault of %s %s", (name, value, problem) => {
    expect(errorOf({ [name]: value })).toContain(problem);
  });

  it("gives credits without money where only this machine can connect, and does not start with it elsewhere", () => {
    expect(parseConfig({ HOST: "127.0.0.1" }).payments).toBe("development");
    expect(parseConfig({ HOST: "127.0.0.1", PAYMENTS: "off" }).payments).toBe("off");
    for (const reachable of [{ HOST: "0.0.0.0" }, { HOST: "127.0.0.1", TRUST_PROXY: "1" }, { BASE_URL: "https://gateway.example" }]) {
      expect(parseConfig(reachable).payments).toBe("off");
      expect(errorOf({ ...reachable, PAYMENTS: "development" })).toContain("PAYMENTS: development gives credits without money");
    }
  });

  it("switches connected apps off", () => {
    expect(parseConfig({ INTEGRATIONS_BROKER_URL: "off" }).integrations).toEqual({ kind: "off" });
  });

  it("reads variables that another file names", () => {
    const { readEnv } = parseConfig({ ACME_KEY: "secret", EMPTY: "" });

    expect(["ACME_KEY", "EMPTY", "UNSET", "constructor"].map(readEnv)).toEqual(["secret", null, null, null]);
  });
});

describe("MEDIA_URL", () => {
  it("is not where people sign in, unless everything is there", () => {
    const [BASE_URL, AUTH_URL, MEDIA_URL] = ["https://ai.example", "https://login.example", "https://login.example/files"];

    expect(() => parseConfig({ BASE_URL, AUTH_URL, MEDIA_URL })).toThrow("MEDIA_URL: must have another host than AUTH_URL");
    expect(parseConfig({ BASE_URL: AUTH_URL, AUTH_URL, MEDIA_URL }).mediaUrl).toBe(MEDIA_URL);
    expect(parseConfig({ BASE_URL, AUTH_URL, MEDIA_URL: "https://media.example" }).mediaUrl).toBe("https://media.example");
  });
});

describe("addressesOf", () => {
  it("builds every address from the port", () => {
    expect(addressesOf(parseConfig({ PORT: "0" }), 5123)).toEqual({
      baseUrl: "http://localhost:5123",
      authUrl: "http://localhost:5123",
      mediaUrl: "http://localhost:5123/media",
    });
  });

  it("builds unset addresses from the base address", () => {
    expect(addressesOf(parseConfig({ BASE_URL: "https://ai.example/gate", MEDIA_URL: "https://media.example" }), 4000)).toEqual({
      baseUrl: "https://ai.example/gate",
      authUrl: "https://ai.example/gate",
      mediaUrl: "https://media.example",
    });
  });
});

describe(".env.example", () => {
  const text = readFileSync(new URL("../../.env.example", import.meta.url), "utf8");

  it("lists every variable, in the schema's order, and no other", () => {
    const names = [...text.matchAll(/^(\w+)=/gm)].map(([, name]) => name);

    expect(names).toEqual([...ENVIRONMENT_NAMES]);
  });

  it("states the defaults", () => {
    const { readEnv: _ofExample, ...config } = parseConfig(parseEnv(text));

    const { readEnv: _ofNothing, ...defaults } = parseConfig({});
    expect(config).toEqual(defaults);
  });
});

describe(".env", () => {
  function read(text: string, env: Record<string, string | undefined> = {}): Record<string, string | undefined> {
    const directory = mkdtempSync(join(tmpdir(), "sluice-env-"));
    try {
      writeFileSync(join(directory, ".env"), text);
      addEnvFile(env, directory);
      return env;
    } finally {
      rmSync(directory, { recursive: true });
    }
  }

  it("adds variables that the environment lacks, which wins even where it is empty", () => {
    const text = '\uFEFF# A comment\r\n\r\nPORT=4001\r\nexport LOG_LEVEL = "warn"\r\nHOST=0.0.0.0 # all\r\nOPENAI_API_KEY=mine\r\n';

    expect(read(text, { PORT: "5000", OPENAI_API_KEY: "" })).toEqual({
      PORT: "5000",
      OPENAI_API_KEY: "",
      LOG_LEVEL: "warn",
      HOST: "0.0.0.0",
    });
  });

  it("takes a quoted value over several lines", () => {
    expect(read('TIERS=\'[\n  {"name":"free"}\n]\'\nPORT=1\n')).toEqual({ TIERS: '[\n  {"name":"free"}\n]', PORT: "1" });
  });

  it("may be missing", () => {
    const env = {};
    addEnvFile(env, join(tmpdir(), "sluice-no-such-directory"));
    expect(env).toEqual({});
  });

  it.each([
    ["PORT 4000", "line 1: must read NAME=value; a comment begins with #"],
    ["PORT=4000\n\nMY-KEY=hunter2", "line 3: must read NAME=value; a comment begins with #"],
    ["PORT=4000\nhunter2", "line 2: must read NAME=value; a comment begins with #"],
    ['OPENAI_API_KEY="hunter2\nPORT=4000', 'line 1: the quote " is not closed'],
  ])("is refused with the line and never a value: %j", (text, problem) => {
    expect(() => read(text)).toThrow(problem);
    expect(() => read(text)).not.toThrow("hunter2");
  });
});

describe("unknown variables", () => {
  const find = (...given: string[]) => findMisspelt(given, new Set<string>(ENVIRONMENT_NAMES), ENVIRONMENT_NAMES);

  it.each([
    ["OPENAI_APIKEY", "OPENAI_API_KEY"],
    ["openai_api_key", "OPENAI_API_KEY"],
    ["ANTROPIC_API_KEY", "ANTHROPIC_API_KEY"],
    ["DATABSE_URL", "DATABASE_URL"],
    ["OWNER_APIKEY", "OWNER_API_KEY"],
    ["SLUICE_PORT", "PORT"],
    ["SLUICE_DATA_DIR", "DATA_DIR"],
    ["SIGNUP", "SIGN_UP"],
    ["MODEL_FILE", "MODELS_FILE"],
    ["ENCRYPTON_KEY", "ENCRYPTION_KEY"],
    ["TRUSTPROXY", "TRUST_PROXY"],
  ])("%s is taken for %s", (given, meant) => {
    expect(find(given)).toEqual([`${given} is not read; did you mean ${meant}?`]);
  });

  it("are accepted when they are another program's, or the right one is set as well", () => {
    const others =
      "PATH HOME USER SHELL TERM LANG PWD OLDPWD HOSTNAME HOSTTYPE LOGNAME MAIL EDITOR TMPDIR DISPLAY SHLVL _ LS_COLORS NODE_ENV NODE_OPTIONS " +
      "PORTS HOSTS PGHOST PGPORT PGDATABASE POSTGRES_URL POSTGRES_PORT MYSQL_HOST REDIS_HOST REDIS_PORT KUBERNETES_PORT REDIS_SERVICE_PORT " +
      "KUBERNETES_SERVICE_HOST AWS_REGION AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY S3_BUCKET_NAME XDG_DATA_DIRS XDG_DATA_HOME " +
      "HTTP_PROXY HTTPS_PROXY NO_PROXY npm_config_loglevel npm_package_name npm_lifecycle_event GITHUB_TOKEN GITHUB_ACTIONS CI " +
      "JINA_API_KEY AI_API_KEY VOYAGE_API_KEY PERPLEXITY_API_KEY GROK_API_KEY STRIPE_API_KEY OTHER_API_KEY OPENAI_API_KEY_2 OLLAMA_HOST " +
      "SSH_AUTH_SOCK OTEL_EXPORTER_OTLP_HEADERS SECRET_KEY PUBLIC_URL SITE_URL API_URL";
    expect(find(...others.split(" "))).toEqual([]);
    expect(find("OPENAI_APIKEY", "OPENAI_API_KEY")).toEqual([]);
    expect(find(...ENVIRONMENT_NAMES)).toEqual([]);
  });
});

describe("findUnread", () => {
  const find = (...given: string[]) => findUnread(given, new Set<string>(ENVIRONMENT_NAMES));

  it.each([
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "metrics are scraped at /metrics, and traces are not sent"],
    ["SMTP_URL", "the gateway sends no e-mail"],
    ["REDIS_URI", "set REDIS_URL"],
  ])("names %s, which has no effect", (name, reason) => {
    expect(find("PATH", name, "REDIS_URL")).toEqual([`${name} is not read: ${reason}.`]);
  });
});
