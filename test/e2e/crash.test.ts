/**
 * SIGKILL under load, repeatedly on the same data: an answer that a caller has received whole is charged once, at its
 * reported price; an answer under way is charged as it was metered, or not at all; and the books balance.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, it } from "vitest";
import { METER_NOTE_MS } from "../../src/limits.js";
import { openDatabase } from "../../src/store/database.js";
import type { UsageRecordModel } from "../../src/store/generated/prisma/models.js";
import { OWNER_KEY, testModels } from "../support/app.js";
import { SERVER_PROGRAM } from "../support/compile.js";
import { createTestDataDir, silentLog } from "../support/database.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { findBrokenInvariants, findUnbilled } from "../support/invariants.js";
import { chatChunk, wireUsage } from "../support/openai-bodies.js";
import { handler } from "../support/upstream-replies.js";
import { summarize } from "./money.js";

/** More often: `CRASH_KILLS=20 npx vitest run test/e2e/crash`. */
const KILLS = Number(process.env.CRASH_KILLS ?? 2);
const JSON_CALLERS = 8;
const STREAM_CALLERS = 8;
const LONG_STREAMS = 3;
/** A kill comes when what every long stream has used has been noted at least once, and then so many answers were received whole. */
const ANSWERS_BEFORE_KILL = 120;
const LONG_STREAM_PACE_MS = 10;
/** So many words take longer than a stream goes on before it is noted, on any engine. */
const WORDS_BEFORE_KILL = (1.5 * METER_NOTE_MS) / LONG_STREAM_PACE_MS;

interface Gateway {
  readonly baseUrl: string;
  readonly process: ChildProcess;
}

interface Answer {
  readonly generationId: string;
  /** In credits, as the caller was told. */
  readonly cost: number;
}

let dataDir: string;
let removeDataDir: () => Promise<void>;
let upstream: FakeUpstream;
let gateway: Gateway | null = null;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  ({ dataDir, remove: removeDataDir } = await createTestDataDir());
  const models = {
    upstreams: [{ id: "acme", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "env:ACME_KEY" }],
    models: testModels(),
  };
  await writeFile(join(dataDir, "models.json"), JSON.stringify(models));
  upstream.answer.usage = wireUsage(100, 10);
  upstream.answer.paceMs = 2;
});
afterAll(async () => {
  gateway?.process.kill("SIGKILL");
  await upstream.close();
  await removeDataDir();
});

/** The server as `npm start` runs it, in a process of its own. */
async function startGateway(): Promise<Gateway> {
  const env = {
    PORT: "0",
    DATA_DIR: dataDir,
    MODELS_FILE: join(dataDir, "models.json"),
    OWNER_API_KEY: OWNER_KEY,
    ACME_KEY: "acme-secret-key",
  };
  const child = spawn(process.execPath, [SERVER_PROGRAM], {
    // More than one process is wanted in vain on the embedded database: it is this one that is killed.
    env: { PATH: process.env.PATH, LOG_LEVEL: "error", WORKERS: "2", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface(child.stdout);
  const baseUrl = await new Promise<string>((resolve, reject) => {
    lines.on("line", (line) => {
      const [, url] = /ready at\s+(\S+)/.exec(line) ?? [];
      if (url) resolve(url);
    });
    child.once("exit", (code) => reject(new Error(`the gateway ended with code ${code} before it was ready`)));
  });
  gateway = { baseUrl, process: child };
  return gateway;
}

async function end({ process: child }: Gateway, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}

function ask({ baseUrl }: Gateway, stream: boolean): Promise<Response> {
  return fetch(`${baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { Authorization: `Bearer ${OWNER_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify({ model: "acme/chat", stream, messages: [{ role: "user", content: "Hello" }] }),
  });
}

/** Callers who ask again and again until the gateway is gone. */
class Load {
  /** Answers that were received whole. */
  readonly answers: Answer[] = [];
  /** Generations that were heard of at all. */
  readonly begun = new Set<string>();
  private readonly callers: Promise<void>[];
  private wake = () => {};

  constructor(private readonly target: Gateway) {
    this.callers = [
      ...Array.from({ length: JSON_CALLERS }, () => this.repeat((response, text) => this.onJson(response, text), false)),
      ...Array.from({ length: STREAM_CALLERS }, () => this.repeat((response, text) => this.onStream(response, text), true)),
    ];
  }

  async hasAnswers(count: number): Promise<void> {
    while (this.answers.length < count) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  /** Resolves when every caller has seen the gateway go. */
  async end(): Promise<void> {
    await Promise.all(this.callers);
  }

  private async repeat(onAnswer: (response: Response, text: string) => void, stream: boolean): Promise<void> {
    try {
      for (;;) {
        const response = await ask(this.target, stream);
        expect(response.status).toBe(200);
        this.begun.add(response.headers.get("x-generation-id") ?? "");
        onAnswer(response, await response.text());
        this.wake();
      }
    } catch (error) {
      // The gateway has gone; anything else is a failure of the test.
      if (!(error instanceof TypeError)) throw error;
    }
  }

  private onJson(response: Response, text: string): void {
    expect(JSON.parse(text)).toMatchObject({ object: "chat.completion" });
    this.answers.push({ generationId: response.headers.get("x-generation-id") ?? "", cost: Number(response.headers.get("x-cost")) });
  }

  private onStream(response: Response, text: string): void {
    const { isDone, usage, error } = summarize(text);
    expect(error).toBeNull();
    if (isDone) this.answers.push({ generationId: response.headers.get("x-generation-id") ?? "", cost: Number(usage?.cost) });
  }
}

interface LongStream {
  readonly generationId: string;
  /** Words that the upstream has sent. */
  readonly sent: () => number;
  /** Resolves when the caller has received that many. */
  received(words: number): Promise<void>;
}

/** A stream that sends one word after the other until its client leaves. */
async function startLongStream(target: Gateway): Promise<LongStream> {
  let sent = 0;
  upstream.replyNext(
    handler(async (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      while (!response.destroyed) {
        response.write(`data: ${JSON.stringify(chatChunk({ content: " word" }))}\n\n`);
        sent += 1;
        await new Promise((resolve) => setTimeout(resolve, LONG_STREAM_PACE_MS));
      }
    }),
  );
  const response = await ask(target, true);
  const waiting: { words: number; resolve: () => void }[] = [];
  let words = 0;
  void (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      words += decoder.decode(bytes, { stream: true }).split('" word"').length - 1;
      for (const { words: wanted, resolve } of waiting) if (words >= wanted) resolve();
    }
  })().catch(() => undefined);
  return {
    generationId: response.headers.get("x-generation-id") ?? "",
    sent: () => sent,
    received: (wanted) => new Promise((resolve) => waiting.push({ words: wanted, resolve })),
  };
}

it(
  `loses no charge and makes none twice when it is killed ${KILLS} times under load`,
  async () => {
    const answers: Answer[] = [];
    const begun = new Set<string>();
    const cut: { readonly generationId: string; readonly sent: number }[] = [];

    for (let kill = 0; kill < KILLS; kill++) {
      const running = await startGateway();
      const long: LongStream[] = [];
      // One after the other, so that each gets its own reply; the load comes after them.
      while (long.length < LONG_STREAMS) long.push(await startLongStream(running));
      await Promise.all(long.map((stream) => stream.received(WORDS_BEFORE_KILL)));
      // Its charges are written behind the notes.
      const load = new Load(running);
      await load.hasAnswers(ANSWERS_BEFORE_KILL);
      await end(running, "SIGKILL");
      await load.end();
      answers.push(...load.answers);
      for (const id of load.begun) begun.add(id);
      cut.push(...long.map((stream) => ({ generationId: stream.generationId, sent: stream.sent() })));
    }
    // What the last kill left is recovered before the next start is ready.
    await end(await startGateway(), "SIGTERM");

    const database = await openDatabase({ databaseUrl: null, dataDir, log: silentLog });
    const rows = new Map((await database.prisma.usageRecord.findMany()).map((row) => [row.id, row]));
    const broken = await findBrokenInvariants(database.pool, { isIdle: true });
    const unbilled = await findUnbilled(
      database.pool,
      answers.map(({ generationId }) => generationId),
    );
    await database.close();

    expect(broken).toEqual({});
    expect(unbilled).toEqual([]);
    // 100 x 0.000001 + 10 x 0.000002 credits each.
    expect(new Set(answers.map(({ cost }) => cost))).toEqual(new Set([0.00012]));
    for (const { generationId } of answers) expect(rows.get(generationId)).toMatchObject({ costNanocredits: 120_000n, status: "ok" });
    for (const { generationId, sent } of cut) expectMetered(rows.get(generationId), sent);
    // Beyond those, only answers under way at a kill may have been charged: no more than there were callers.
    const others = rows.size - answers.length - cut.length;
    expect(others).toBeLessThanOrEqual(KILLS * (JSON_CALLERS + STREAM_CALLERS));
    expect(answers.length).toBeGreaterThanOrEqual(KILLS * ANSWERS_BEFORE_KILL);
  },
  100_000 * (KILLS + 1),
);

/** At what the meter had noted within the last second or so, and no more than was said. */
function expectMetered(row: UsageRecordModel | undefined, wordsSent: number): void {
  expect(row).toMatchObject({ status: "cancelled", usageSource: "partial" });
  const metered = row?.outputTextTokens ?? 0;
  expect(metered).toBeGreaterThan(0);
  expect(metered).toBeLessThanOrEqual(wordsSent);
  expect(row?.costNanocredits).toBe(BigInt(row?.inputTextTokens ?? 0) * 1_000n + BigInt(metered) * 2_000n);
}
