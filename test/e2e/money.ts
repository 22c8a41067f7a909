/** What the money tests share: callers with credits of their own, chats, and the books that they leave. */
import { randomUUID } from "node:crypto";
import type pg from "pg";
import { expect } from "vitest";
import { createApiKeyText, startOfApiKey } from "../../src/lib/api-key-format.js";
import type { Database } from "../../src/store/database.js";
import type { UsageRecordModel } from "../../src/store/generated/prisma/models.js";
import type { TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { type AccountState, createTestLedger, readAccount, readEntries, readKey } from "../support/ledger.js";

/** In nanocredits. */
export const CREDIT = 1_000_000_000n;

export interface Payer {
  readonly key: string;
  readonly accountId: string;
  readonly apiKeyId: string;
}

export interface PayerOptions {
  readonly tier?: bigint;
  readonly crypto?: bigint;
  readonly pack?: bigint;
  /** Of the key. */
  readonly budget?: bigint;
  readonly permissions?: readonly string[];
  /** Those that the key may use; every model unless stated. */
  readonly allowedModels?: readonly string[];
}

export function databaseOf(app: TestApp): Database {
  return app.database;
}

export function poolOf(app: TestApp): pg.Pool {
  return databaseOf(app).pool;
}

/** A new account with these credits, and a secret key of it. */
export async function createPayer(
  app: TestApp,
  { budget, permissions = ["balance", "usage"], allowedModels, ...buckets }: PayerOptions = {},
): Promise<Payer> {
  const { prisma, ...database } = databaseOf(app);
  const keyCache = app.infrastructure.keyCache;
  const key = createApiKeyText("sk");
  const [accountId, apiKeyId] = [randomUUID(), randomUUID()];
  await prisma.account.create({ data: { id: accountId, handle: `payer-${accountId}` } });
  await prisma.apiKey.create({
    data: {
      id: apiKeyId,
      accountId,
      hash: new Uint8Array(keyCache.hash(key)),
      type: "secret",
      name: "payer",
      start: startOfApiKey(key),
      permissions: [...permissions],
      budgetNanocredits: budget ?? null,
      ...(allowedModels && { restrictsModels: true, allowedModels: [...allowedModels] }),
    },
  });
  const ledger = createTestLedger(database);
  for (const bucket of ["tier", "crypto", "pack"] as const) {
    const amount = buckets[bucket] ?? 0n;
    if (amount > 0n) await ledger.grant({ id: randomUUID(), accountId, bucket, amount, note: null });
  }
  return { key, accountId, apiKeyId };
}

export interface ChatOptions {
  readonly signal?: AbortSignal;
}

/** A chat completion whose only message is "Hello". */
export function chat(app: TestApp, payer: Payer, body: object, options: ChatOptions = {}): Promise<Response> {
  return fetch(`${app.baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { Authorization: `Bearer ${payer.key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: "Hello" }], ...body }),
    ...options,
  });
}

export interface StreamedEvent {
  readonly event: string;
  /** `[DONE]`, or the data parsed. */
  readonly data: Record<string, unknown> | "[DONE]";
}

export function parseEvents(text: string): StreamedEvent[] {
  return text
    .split("\n\n")
    .filter((block) => block.includes("data: "))
    .map((block) => {
      const event = /^event: (.*)$/m.exec(block)?.[1] ?? "message";
      const data = /^data: (.*)$/m.exec(block)?.[1] ?? "";
      return { event, data: data === "[DONE]" ? data : JSON.parse(data) };
    });
}

/** The text of the chunks, the last chunk's `usage`, the first finish_reason, and how it ended. */
export function summarize(text: string) {
  const events = parseEvents(text);
  const objects = events.flatMap(({ data }) => (data === "[DONE]" ? [] : [data]));
  const chunks = objects.filter(({ error }) => !error) as readonly Chunk[];
  const failure = objects.find(({ error }) => error) as { error: { code: string } } | undefined;
  return {
    content: chunks.map((chunk) => chunk.choices?.[0]?.delta?.content ?? "").join(""),
    usage: chunks.at(-1)?.usage ?? null,
    finishReason: chunks.find((chunk) => chunk.choices?.[0]?.finish_reason)?.choices?.[0]?.finish_reason ?? null,
    isDone: events.at(-1)?.data === "[DONE]",
    error: failure?.error ?? null,
  };
}

interface Chunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string }; readonly finish_reason?: string | null }[];
  readonly usage?: { readonly cost?: number; readonly prompt_tokens?: number; readonly completion_tokens?: number };
}

/** Reads a stream until its text is `content`. */
export async function readStream(response: Response, content: string): Promise<void> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (summarize(text.slice(0, text.lastIndexOf("\n\n") + 2)).content === content) return;
  }
  throw new Error(`the stream ended before "${content}" had come`);
}

export interface Books {
  readonly rows: readonly UsageRecordModel[];
  readonly account: AccountState;
  readonly key: { readonly spent: bigint; readonly held: bigint };
}

/** The payer's books once nothing of any payer is under way, which they never are for long; every invariant is checked. */
export async function closeBooks(app: TestApp, payer: Payer): Promise<Books> {
  const { prisma, pool } = databaseOf(app);
  await expectNothingHeld(app);
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  const rows = await prisma.usageRecord.findMany({ where: { accountId: payer.accountId }, orderBy: { timestamp: "asc" } });
  const { spent, held } = await readKey(pool, payer.apiKeyId);
  return { rows, account: await readAccount(pool, payer.accountId), key: { spent, held } };
}

/** Resolves once nothing is set aside for a generation any more, by a hold of its own or out of a lease. */
export async function expectNothingHeld(app: TestApp, interval = 10): Promise<void> {
  const { prisma } = databaseOf(app);
  await expect.poll(async () => app.infrastructure.leases.openReservations + (await prisma.hold.count()), { interval }).toBe(0);
}

/** The payer's books once they hold `count` usage rows. */
export async function booksWith(app: TestApp, payer: Payer, count: number): Promise<Books> {
  const { prisma } = databaseOf(app);
  await expect.poll(() => prisma.usageRecord.count({ where: { accountId: payer.accountId } }), { interval: 10 }).toBe(count);
  return closeBooks(app, payer);
}

/** The part of a charge that could not be paid. */
export async function writtenOff(app: TestApp, generationId: string): Promise<bigint> {
  const entries = await readEntries(poolOf(app), generationId);
  return -(entries.find(([book]) => book === "write_off")?.[1] ?? 0n);
}
