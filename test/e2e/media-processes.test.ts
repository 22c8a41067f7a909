/** Two processes on one PostgreSQL and one bucket: a file that one of them keeps is served by the other. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, OWNER_KEY, type TestApp } from "../support/app.js";
import { createEmptyDir } from "../support/database.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { isS3Installed, S3_ABSENT, startS3, type TestS3 } from "../support/s3.js";
import { createPostgresDatabase, type SuiteDatabase } from "../support/suite-server.js";

const absent = !isPostgresInstalled ? POSTGRES_ABSENT : !isS3Installed ? S3_ABSENT : null;
if (absent !== null) console.warn(`skipped, two processes on one bucket: ${absent}`);

describe.skipIf(absent !== null)("two processes with one bucket", () => {
  let shared: SuiteDatabase;
  let s3: TestS3 | null;
  let a: TestApp;
  let b: TestApp;

  beforeAll(async () => {
    [shared, s3] = await Promise.all([createPostgresDatabase(), startS3()]);
    const bucket = (await s3?.createBucket()) ?? null;
    const config = { databaseUrl: shared.url, s3: bucket, encryptionKey: "the-same-key-for-both-processes" };
    a = await createTestApp({ config, dataDir: await createEmptyDir() });
    b = await createTestApp({ config, dataDir: await createEmptyDir(), upstream: a.upstream });
  });
  afterAll(async () => {
    await b?.close();
    await a?.close();
    await s3?.stop();
    await shared?.drop();
  });

  const authorization = { Authorization: `Bearer ${OWNER_KEY}` };

  it("give out each other's files", async () => {
    const sent = await fetch(`${a.baseUrl}/media/upload`, { method: "POST", headers: authorization, body: "what A was sent" });
    const { id } = (await sent.json()) as { id: string };

    const again = await fetch(`${b.baseUrl}/media/upload`, { method: "POST", headers: authorization, body: "what A was sent" });

    expect(await (await fetch(`${b.baseUrl}/media/${id}`)).text()).toBe("what A was sent");
    expect(await again.json()).toMatchObject({ id, duplicate: true });
  });

  it("answer from each other's content cache", async () => {
    const picture = (app: TestApp) => fetch(`${app.baseUrl}/image/a-common-cat?model=sandbox/image&seed=7`, { headers: authorization });
    const made = await picture(a);
    const bytes = Buffer.from(await made.arrayBuffer());

    const known = await picture(b);

    expect([made.headers.get("x-cache"), known.headers.get("x-cache")]).toEqual(["MISS", "HIT"]);
    expect(Buffer.from(await known.arrayBuffer()).equals(bytes)).toBe(true);
  });
});
