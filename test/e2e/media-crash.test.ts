/**
 * SIGKILL in the middle of fifty uploads: every acknowledged file is there whole, no served file is truncated, and
 * interrupted uploads leave nothing.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { type ClientRequest, request } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BlobGc } from "../../src/services/files/blob-gc.js";
import { createTestApp, OWNER_KEY } from "../support/app.js";
import { SERVER_PROGRAM } from "../support/compile.js";
import { createTestDataDir, silentLog } from "../support/database.js";

const UPLOADS = 50;
/** Those that stop half-way and wait; the others go on as fast as they can. */
const HALVES = 20;
const ACKNOWLEDGED_BEFORE_KILL = 10;
const FILE_BYTES = 400_000;
const PIECE_BYTES = 64 * 1024;
const HOUR_MS = 60 * 60 * 1000;

let dataDir: string;
let removeDataDir: () => Promise<void>;
let gateway: ChildProcess | null = null;

beforeAll(async () => {
  ({ dataDir, remove: removeDataDir } = await createTestDataDir());
});
afterAll(async () => {
  gateway?.kill("SIGKILL");
  await removeDataDir();
});

/** The server as `npm start` runs it. */
async function startGateway(): Promise<{ readonly baseUrl: string; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, [SERVER_PROGRAM], {
    env: { PATH: process.env.PATH, LOG_LEVEL: "error", PORT: "0", DATA_DIR: dataDir, OWNER_API_KEY: OWNER_KEY },
    stdio: ["ignore", "pipe", "inherit"],
  });
  gateway = child;
  const baseUrl = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on("line", (line) => {
      const [, url] = /ready at\s+(\S+)/.exec(line) ?? [];
      if (url) resolve(url);
    });
    child.once("exit", (code) => reject(new Error(`the gateway ended with code ${code} before it was ready`)));
  });
  return { baseUrl: baseUrl.replace("localhost", "127.0.0.1"), child };
}

/** Resolves with the id once the upload is acknowledged; never, or with null, when the gateway goes away before that. */
function startUpload(
  baseUrl: string,
  bytes: Buffer,
  bytesSent: number,
): { readonly req: ClientRequest; readonly id: Promise<string | null> } {
  const headers = { Authorization: `Bearer ${OWNER_KEY}`, "Content-Length": bytes.length };
  const req = request(`${baseUrl}/media/upload`, { method: "POST", headers, agent: false });
  const id = new Promise<string | null>((resolve) => {
    req.on("error", () => resolve(null));
    req.on("response", async (res) => {
      const chunks: Buffer[] = [];
      try {
        for await (const chunk of res) chunks.push(chunk);
        resolve((JSON.parse(Buffer.concat(chunks).toString()) as { id: string }).id);
      } catch {
        resolve(null);
      }
    });
  });
  void (async () => {
    for (let at = 0; at < bytesSent && !req.destroyed; at += PIECE_BYTES) {
      if (!req.write(bytes.subarray(at, Math.min(at + PIECE_BYTES, bytesSent)))) await Promise.race([once(req, "drain"), id]);
    }
    if (bytesSent === bytes.length) req.end();
  })();
  return { req, id };
}

const drafts = () => readdir(join(dataDir, "blobs", ".drafts"));

it("keeps acknowledged uploads, and nothing of the rest", { timeout: 120_000 }, async () => {
  const { baseUrl, child } = await startGateway();
  const halves = Array.from({ length: HALVES }, () => startUpload(baseUrl, randomBytes(FILE_BYTES), FILE_BYTES / 2));
  await expect.poll(drafts, { timeout: 30_000 }).toHaveLength(HALVES);
  const acknowledged = new Set<string>();
  const uploads = Array.from({ length: UPLOADS - HALVES }, () => startUpload(baseUrl, randomBytes(FILE_BYTES), FILE_BYTES));
  const enough = new Promise<void>((resolve) => {
    for (const { id } of uploads) {
      void id.then((known) => {
        if (known !== null) acknowledged.add(known);
        if (acknowledged.size >= ACKNOWLEDGED_BEFORE_KILL) resolve();
      });
    }
  });
  await enough;
  const exited = once(child, "exit");

  child.kill("SIGKILL");
  await exited;
  await Promise.all([...halves, ...uploads].map(({ id }) => id));
  expect((await drafts()).length).toBeGreaterThanOrEqual(HALVES);

  const app = await createTestApp({ dataDir });
  try {
    const blobs = app.infrastructure.blobs;
    const { prisma } = app.database;
    const clock = { now: () => new Date(Date.now() + 2 * HOUR_MS) };
    const owner = { folder: "media", findNamed: (keys: readonly string[]) => app.services.mediaLinks.findNamed(keys) };
    await new BlobGc(blobs, [owner], clock, silentLog).sweepOrphans();

    expect(await drafts()).toEqual([]);
    const rows = await prisma.mediaFile.findMany();
    const named = new Set(rows.map(({ sha256 }) => `media/${Buffer.from(sha256).toString("hex")}`));
    for await (const { key } of blobs.list("media")) expect([...named]).toContain(key);
    for (const { id, sha256 } of rows) {
      const answer = await fetch(`${app.baseUrl}/media/${id}`);
      // A row whose bytes did not come any more is no file.
      if (answer.status === 404 && !acknowledged.has(id)) continue;
      expect([id, answer.status]).toEqual([id, 200]);
      const bytes = Buffer.from(await answer.arrayBuffer());
      expect(bytes.length).toBe(FILE_BYTES);
      expect(createHash("sha256").update(bytes).digest().equals(Buffer.from(sha256))).toBe(true);
    }
    const known = new Set(rows.map(({ id }) => id));
    expect([...acknowledged].filter((id) => !known.has(id))).toEqual([]);
  } finally {
    await app.close();
  }
});
