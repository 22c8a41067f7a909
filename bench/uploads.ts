/** What a gateway needs in memory while many upload large files at once, on each kind of blob store and in each form of upload. */
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { join } from "node:path";
import { S3_ABSENT, startS3 } from "../test/support/s3.js";
import { startSluice, startUpstream } from "./contenders.js";
import { findPostgres, startPostgres } from "./support/postgres.js";
import { memory, resetPeakMemory } from "./support/process.js";

const UPLOADS = 100;
const FILE_BYTES = 10 * 1024 * 1024;
/** A multiple of three, so that a file's beginning is a beginning of its base64, too. */
const SERIAL_BYTES = 24;
const FORMS = ["raw", "multipart", "json"] as const;
/** The most that the uploads may add, in MB of 10^6 bytes: a quarter of their size. */
const ADDED_MB_MAX = 250;

export interface UploadOutcome {
  readonly store: string;
  readonly form: (typeof FORMS)[number];
  readonly idleMb: number;
  readonly peakMb: number;
  readonly seconds: number;
}

interface UploadSettings {
  readonly directory: string;
  readonly complain: (problem: string) => void;
}

interface Server {
  readonly port: number;
  readonly ownerKey: string;
}

/** PostgreSQL where there is one: what the embedded database holds in memory is no part of an upload. */
export async function measureUploads({ directory, complain }: UploadSettings): Promise<readonly UploadOutcome[]> {
  const outcomes: UploadOutcome[] = [];
  const binaries = findPostgres();
  const s3 = await startS3();
  if (s3 === null) console.log(`Uploads are measured on a directory only: ${S3_ABSENT}.`);
  for (const store of s3 === null ? ["directory"] : ["directory", "bucket"]) {
    const own = join(directory, `uploads-${store}`);
    mkdirSync(own);
    const upstream = await startUpstream(own, { chunks: 1, paceMs: 0, delayMs: 0 });
    const postgres = binaries === null ? null : await startPostgres(binaries);
    const bucket = store === "bucket" ? ((await s3?.createBucket()) ?? null) : null;
    const environment = {
      MEDIA_QUOTA_BYTES: String(FILE_BYTES * UPLOADS * FORMS.length * 2),
      ...(bucket?.endpoint && { S3_BUCKET: bucket.bucket, S3_ENDPOINT: bucket.endpoint, S3_REGION: bucket.region }),
      ...(bucket?.credentials && {
        S3_ACCESS_KEY_ID: bucket.credentials.accessKeyId,
        S3_SECRET_ACCESS_KEY: bucket.credentials.secretAccessKey,
      }),
    };
    const sluice = await startSluice({
      directory: own,
      upstreamPort: upstream.port,
      environment,
      ...(postgres && { databaseUrl: postgres.url() }),
    });
    try {
      // Modules that the first upload loads stay in memory.
      await upload(sluice, "raw", randomBytes(FILE_BYTES));
      for (const form of FORMS) {
        const idleMb = memory(sluice.pid)?.residentMb ?? 0;
        resetPeakMemory(sluice.pid);
        const begun = performance.now();
        const failed = await uploadAtOnce(sluice, form);
        if (failed > 0) complain(`${failed} of ${UPLOADS} uploads to a ${store} as ${form} failed.`);
        outcomes.push({ store, form, idleMb, peakMb: memory(sluice.pid)?.peakMb ?? 0, seconds: (performance.now() - begun) / 1_000 });
      }
    } finally {
      await sluice.shutDown();
      await postgres?.stop();
      await upstream.stop();
    }
  }
  await s3?.stop();
  return outcomes;
}

export function uploadTable(outcomes: readonly UploadOutcome[]): string {
  const rows = outcomes.map(({ store, form, idleMb, peakMb, seconds }) =>
    [store, form, Math.round(idleMb), Math.round(peakMb), Math.round(peakMb - idleMb), seconds.toFixed(1)].join(" | "),
  );
  return [`store | form | idle MB | peak MB | added MB | s`, "--- | --- | ---: | ---: | ---: | ---:", ...rows]
    .map((row) => `| ${row} |`)
    .join("\n");
}

export function checkUploads(outcomes: readonly UploadOutcome[]): string {
  const most = Math.max(...outcomes.map(({ idleMb, peakMb }) => peakMb - idleMb));
  return `${most <= ADDED_MB_MAX ? "met" : "MISSED"}: ${UPLOADS} uploads of 10 MiB at once add at most ${Math.round(most)} MB (at most ${ADDED_MB_MAX})`;
}

/** How many failed. Each file is another one, though they share all but their beginning: this process needs room as well. */
async function uploadAtOnce(server: Server, form: UploadOutcome["form"]): Promise<number> {
  const rest = randomBytes(FILE_BYTES - SERIAL_BYTES);
  const shared = form === "json" ? Buffer.from(rest.toString("base64")) : rest;
  const all = Array.from({ length: UPLOADS }, () => send(server, form, [randomBytes(SERIAL_BYTES), shared]));
  return (await Promise.all(all)).filter((status) => status !== 200).length;
}

function upload(server: Server, form: UploadOutcome["form"], bytes: Buffer): Promise<number> {
  return send(server, form, [bytes]);
}

const agent = new Agent({ maxSockets: UPLOADS });

/** Resolves with the status; 0 when there was no answer. */
function send({ port, ownerKey }: Server, form: UploadOutcome["form"], parts: readonly Buffer[]): Promise<number> {
  const { type, body } = wrap(form, parts);
  const headers = {
    Authorization: `Bearer ${ownerKey}`,
    "Content-Type": type,
    "Content-Length": body.reduce((sum, part) => sum + part.length, 0),
  };
  return new Promise((resolve) => {
    const req = httpRequest({ host: "127.0.0.1", port, path: "/media/upload", method: "POST", headers, agent }, (res) => {
      res.resume();
      res.on("end", () => resolve(res.statusCode ?? 0));
    });
    req.on("error", () => resolve(0));
    for (const part of body) req.write(part);
    req.end();
  });
}

function wrap(form: UploadOutcome["form"], parts: readonly Buffer[]): { readonly type: string; readonly body: readonly Buffer[] } {
  const [serial = Buffer.alloc(0), ...rest] = parts;
  switch (form) {
    case "raw":
      return { type: "application/octet-stream", body: parts };
    case "json":
      return { type: "application/json", body: [Buffer.from(`{"data":"${serial.toString("base64")}`), ...rest, Buffer.from('"}')] };
    case "multipart": {
      const head = '--bench\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';
      return { type: "multipart/form-data; boundary=bench", body: [Buffer.from(head), ...parts, Buffer.from("\r\n--bench--\r\n")] };
    }
  }
}
