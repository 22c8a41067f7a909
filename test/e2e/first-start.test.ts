/** A newcomer's first minutes: a port that is taken, a key that is lost, a `.env` with a slip. */
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { projectRoot } from "../../scripts/build.mjs";
import { runSluice } from "../../scripts/sluice/run.js";
import { createApp } from "../../src/app.js";
import { parseConfig } from "../../src/config/config.js";
import { isWellFormedApiKey } from "../../src/lib/api-key-format.js";
import { createTestApp, OWNER_KEY, type TestApp } from "../support/app.js";
import { createEmptyDir, createTestDataDir, silentLog } from "../support/database.js";
import { readLoadedPackageFiles } from "../support/loaded-packages.js";
import { isPostgresInstalled } from "../support/postgres.js";
import { createPostgresDatabase, createSuiteDatabase, createTestPool } from "../support/suite-server.js";

/** A free address of this machine. */
const ownHost = () => `127.${randomInt(2, 250)}.${randomInt(1, 250)}.${randomInt(1, 250)}`;
const PORT = 4000;

interface Place {
  readonly env: Readonly<Record<string, string>>;
  /** Where it is started. */
  readonly directory: string;
  remove(): Promise<void>;
}

/** An empty database, and a directory to start in. */
async function createPlace(): Promise<Place> {
  const suite = await createSuiteDatabase();
  const directory = await createEmptyDir();
  const data = suite ? null : await createTestDataDir();
  return {
    directory,
    env: { PATH: process.env.PATH ?? "", DATA_DIR: data?.dataDir ?? join(directory, "data"), ...(suite && { DATABASE_URL: suite.url }) },
    remove: async () => {
      await suite?.drop();
      await data?.remove();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
}

/** The server in a process of its own, until it ends or says what `until` waits for; then it is stopped. */
async function start(
  { env, directory }: Place,
  more: Readonly<Record<string, string>>,
  onReady?: (out: string) => Promise<void>,
): Promise<Ended> {
  const child = spawn(process.execPath, [join(projectRoot, "dist/main.js")], { cwd: directory, env: { ...env, ...more } });
  onTestFinished(() => void child.kill("SIGKILL"));
  let [out, error] = ["", ""];
  child.stderr.on("data", (data: Buffer) => {
    error += data.toString();
  });
  const ready = new Promise<void>((resolve) => {
    child.stdout.on("data", (data: Buffer) => {
      out += data.toString();
      if (/ready at[\s\S]*\n\n$/.test(out)) resolve();
    });
  });
  const closed = once(child, "close") as Promise<[number | null]>;
  await Promise.race([ready, closed]);
  if (child.exitCode === null) {
    await onReady?.(out);
    child.kill("SIGTERM");
  }
  const [code] = await closed;
  return { code, out, error };
}

async function occupy(host: string, port: number): Promise<Server> {
  const server = createServer();
  server.listen(port, host);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return server;
}

/** Beginnings of files in packages that are loaded when something first asks for them, or that the bundle has in another way. */
const LOADED_LATER = [
  ...["@ai-sdk/", "@aws-sdk/", "@modelcontextprotocol/", "@secretlint/", "@smithy/", "better-auth/", "ioredis/", "kysely/", "prom-client/"],
  ...["@echogarden/", "@mediabunny/", "h264-mp4-encoder/", "mediabunny/", "opentype.js/", "opusscript/", "sharp/", "wasm-media-encoders/"],
  ...["body-parser/", "file-type/", "iconv-lite/", "ibantools/", "libphonenumber-js/", "multer/"],
  ...["graphiql/", "react/", "swagger-ui-dist/"],
  ...["@prisma/client/runtime/query_compiler_fast_bg.postgresql.wasm-base64", "zod/v4/locales/de."],
];

describe("A first start", () => {
  it("loads the modules of the first requests, and none that only some requests need", async () => {
    const place = await createPlace();
    onTestFinished(() => place.remove());
    const coverage = join(place.directory, "coverage");

    expect(await start(place, { HOST: ownHost(), NODE_V8_COVERAGE: coverage })).toMatchObject({ code: 0, error: "" });

    const loaded = readLoadedPackageFiles(coverage);
    expect(loaded).toEqual(expect.arrayContaining([expect.stringMatching(/^express\//), expect.stringMatching(/^@prisma\/client\//)]));
    expect(loaded.filter((file) => LOADED_LATER.some((beginning) => file.startsWith(beginning)))).toEqual([]);
  });

  it("on a port that is in use says so in a sentence, and the next one still has a key to show", async () => {
    const place = await createPlace();
    onTestFinished(() => place.remove());
    const host = ownHost();
    const taken = await occupy(host, PORT);
    await writeFile(join(place.directory, ".env"), `HOST=${host}\nOPENAI_APIKEY="not to be shown"\n`);

    expect(await start(place, {})).toEqual({
      code: 1,
      out: expect.stringContaining("OPENAI_APIKEY is not read; did you mean OPENAI_API_KEY?"),
      error: `Port ${PORT} is in use: stop what listens there, or set PORT to another one.\n`,
    });
    taken.close();
    await once(taken, "close");

    let [status, metrics] = [0, ""];
    const second = await start(place, { LOG_LEVEL: "error" }, async (out) => {
      const [key = ""] = /\bsk_\w+/.exec(out) ?? [];
      const answer = await fetch(`http://${host}:${PORT}/account/key`, { headers: { Authorization: `Bearer ${key}` } });
      status = answer.status;
      // The parts that are loaded at their first use are in the bundle, too.
      metrics = await fetch(`http://${host}:${PORT}/metrics`).then((scraped) => scraped.text());
    });
    expect(status).toBe(200);
    expect(metrics).toContain("\nsluice_database_available 1\n");
    expect(second).toMatchObject({ code: 0, error: "" });
    expect(second.out).not.toContain("not to be shown");
  });

  it("answers that it is starting, until it is ready; one that fails gives the port back", async () => {
    // A database that takes the connection and says nothing.
    const sockets: Socket[] = [];
    const database = await occupy("127.0.0.1", 0);
    database.on("connection", (socket) => sockets.push(socket));
    const { port } = database.address() as { port: number };
    const host = ownHost();
    const directory = await createEmptyDir();
    const config = { ...parseConfig({ HOST: host, DATA_DIR: directory, DATABASE_URL: `postgresql://nobody@127.0.0.1:${port}/none` }) };
    const starting = createApp(config, silentLog).then(
      () => null,
      (error: Error) => error.message,
    );
    const ask = async (path: string, init: RequestInit = {}) => {
      const answer = await fetch(`http://${host}:${PORT}${path}`, init);
      return { status: answer.status, retryAfter: answer.headers.get("retry-after"), body: await answer.json() };
    };
    const refused = { code: "SERVICE_UNAVAILABLE", message: "The gateway is starting. Try again in a moment." };

    await expect.poll(() => ask("/healthz").catch(() => null)).toEqual({ status: 200, retryAfter: null, body: { status: "ok" } });
    const notYet = { status: 503, retryAfter: "1", body: { status: 503, success: false, error: expect.objectContaining(refused) } };
    expect(await ask("/readyz")).toEqual(notYet);
    expect(await ask("/v1/chat/completions", { method: "POST", body: "x".repeat(200_000) })).toEqual(notYet);
    expect(await ask("/graphql", { method: "POST", body: "{}" })).toMatchObject({
      status: 503,
      body: { errors: [{ message: refused.message, extensions: { code: refused.code } }] },
    });
    await expect.poll(() => sockets.length).toBeGreaterThan(0);
    database.on("connection", (socket) => socket.destroy());
    for (const socket of sockets) socket.destroy();

    expect(await starting).toMatch(/^The database at DATABASE_URL does not answer/);
    await occupy(host, PORT);
    await rm(directory, { recursive: true });
  });

  it("with the embedded database, which no workers can share, says that one runs", async () => {
    const { ended } = await startOn({ HOST: "192.0.2.1", WORKERS: "3" });

    expect(ended.out).toContain(
      "WORKERS is 3, but the embedded database serves one process, so one runs: set DATABASE_URL to a PostgreSQL database to run more, or unset WORKERS.",
    );
  });

  describe("D that cannot succeed states the remedy, and whether to try again", () => {
    const NO_DATABASE = "postgresql://nobody@127.0.0.1:1/none";
    const MODELS = '{ "models": [{ "id": "x" }] }';
    const upstreams = { upstreams: [], models: [] };

    it.each<[string, number, RegExp, Record<string, string>, Record<string, string>?]>([
      [
        "an owner's key that is cut off",
        78,
        /OWNER_API_KEY: is not whole: .* `npm run -s sluice -- key generate` prints/,
        { OWNER_API_KEY: "sk_short" },
      ],
      ["a variable that is not valid", 78, /PORT: must be a whole number/, { PORT: "many" }],
      [
        "a variable without its partner",
        78,
        /DATABASE_URL: is needed when DATABASE_DIRECT_URL is set/,
        { DATABASE_DIRECT_URL: NO_DATABASE },
      ],
      ["a line of .env that is none", 78, /\.env is not valid:\n {2}line 1: must read NAME=value/, {}, { ".env": "PORT 4000" }],
      ["a models file that is not valid", 78, /models\.0/, { MODELS_FILE: "models.json" }, { "models.json": MODELS }],
      ["a models file that is not there", 78, /none\.json/, { MODELS_FILE: "none.json" }],
      ["a manifest of documents that is not valid", 78, /must map the SHA-256/, { GRAPHQL_PERSISTED_FILE: "p.json" }, { "p.json": "[]" }],
      ["secrets that are damaged", 78, /secrets\.json is damaged/, {}, { "data/secrets.json": "{" }],
      ["an address of another machine", 1, /^HOST 192\.0\.2\.1 is no address of this machine: /, { HOST: "192.0.2.1" }],
      ["a database that does not answer", 1, /^The database at DATABASE_URL does not answer: /, { DATABASE_URL: NO_DATABASE }],
      [
        "a database that does not answer its workers",
        1,
        /^The database at DATABASE_URL does not answer: /,
        { DATABASE_URL: NO_DATABASE, WORKERS: "2" },
      ],
      [
        "a valid models file, and no database",
        1,
        /^The database at/,
        { MODELS_FILE: "m.json", DATABASE_URL: NO_DATABASE },
        { "m.json": JSON.stringify(upstreams) },
      ],
    ])("%s: exit code %i", async (_what, code, words, env, files = {}) => {
      const { ended } = await startOn(env, files);

      expect(ended).toMatchObject({ code, error: expect.stringMatching(words) });
      expect(ended.error).not.toMatch(/\n\s+at /);
    });

    it.skipIf(!isPostgresInstalled).each([
      ["one process", "1"],
      ["several workers", "2"],
    ])(
      "another deployment's ENCRYPTION_KEY, a database that is not there and an owner's key that was revoked, of %s: exit code 78",
      async (_who, WORKERS) => {
        const database = await createPostgresDatabase();
        const env = { DATABASE_URL: database.url, ENCRYPTION_KEY: "the key of this database", WORKERS };
        const owner = { ...env, OWNER_API_KEY: OWNER_KEY };
        const { ended: first } = await startOn(owner);
        const pool = createTestPool(database.url, 1);
        await pool.query("UPDATE api_key SET revoked_at = now()");
        await pool.end();

        const { ended: foreign } = await startOn({ ...env, ENCRYPTION_KEY: "the key of another one" });
        const { ended: revoked } = await startOn(owner);
        await database.drop();
        const { ended: gone } = await startOn(env);

        expect([first.code, foreign.code, revoked.code, gone.code]).toEqual([0, 78, 78, 78]);
        expect(foreign.error).toContain("is not the one that this database was made with");
        expect(revoked.error).toContain("OWNER_API_KEY was revoked at");
        expect(gone.error).toMatch(/^The database at DATABASE_URL does not answer: database .* does not exist/);
      },
    );
  });

  /** In a directory of its own with these files. */
  async function startOn(env: Record<string, string>, files: Record<string, string> = {}): Promise<{ readonly ended: Ended }> {
    const directory = await createEmptyDir();
    await mkdir(join(directory, "data"));
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
    const place: Place = { env: { PATH: process.env.PATH ?? "" }, directory, remove: async () => undefined };
    const ended = await start(place, { PORT: "0", DATA_DIR: join(directory, "data"), ...env });
    await rm(directory, { recursive: true });
    return { ended };
  }
});

describe("sluice owner key", () => {
  let app: TestApp;
  let env: Record<string, string>;
  let drop: () => Promise<void> = async () => undefined;

  beforeAll(async () => {
    const suite = await createSuiteDatabase();
    app = await createTestApp(suite ? { config: { databaseUrl: suite.url } } : {});
    env = { DATA_DIR: app.dataDir, ...(suite && { DATABASE_URL: suite.url }) };
    if (suite) drop = suite.drop;
  });
  afterAll(async () => {
    await app.close();
    await drop();
  });

  async function sluice(...args: string[]) {
    const [out, error]: [string[], string[]] = [[], []];
    const code = await runSluice(args, env, { out: (text) => out.push(text), error: (text) => error.push(text) });
    return { code, out: out.join("\n"), error: error.join("\n") };
  }
  const statusOf = async (key: string) =>
    (await fetch(`${app.baseUrl}/account/key`, { headers: { Authorization: `Bearer ${key}` } })).status;

  it("makes one more beside a gateway that runs on PostgreSQL, alone on standard output; or says that the gateway must be stopped", async () => {
    const made = await sluice("owner", "key");
    if (env.DATABASE_URL === undefined) {
      expect(made).toEqual({ code: 1, out: "", error: expect.stringMatching(/^sluice: The gateway is running, .* stop it/) });
      return;
    }

    expect(made.code).toBe(0);
    expect(isWellFormedApiKey(made.out)).toBe(true);
    expect(made.error).toMatch(/^sluice: The owner's older keys go on working: sk_OwnerOf\.\.\. of .*--revoke-others/);
    expect([await statusOf(made.out), await statusOf(app.key)]).toEqual([200, 200]);

    const only = await sluice("owner", "key", "--revoke-others");

    expect(only).toMatchObject({ code: 0, error: expect.stringMatching(/^sluice: Ended: /) });
    expect(await statusOf(only.out)).toBe(200);
    await expect.poll(async () => [await statusOf(made.out), await statusOf(app.key)]).toEqual([401, 401]);
  });
});
