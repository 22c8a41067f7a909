/** Sessions of several processes on one database: what ends on one is over on the others. */
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { createEmptyDir } from "../support/database.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { type Person, signedIn, signIn, signUp } from "../support/sign-in.js";
import { createPostgresDatabase, type SuiteDatabase } from "../support/suite-server.js";

describe.skipIf(!isPostgresInstalled)(isPostgresInstalled ? "Two processes" : `Two processes (${POSTGRES_ABSENT})`, () => {
  let shared: SuiteDatabase;
  let upstream: FakeUpstream;
  let one: TestApp;
  let two: TestApp;
  const dataDirs: string[] = [];

  async function startProcess(): Promise<TestApp> {
    const dataDir = await createEmptyDir();
    dataDirs.push(dataDir);
    const config = { databaseUrl: shared.url, encryptionKey: "the same for every process of a deployment" };
    return createTestApp({ upstream, dataDir, config });
  }

  beforeAll(async () => {
    [shared, upstream] = await Promise.all([createPostgresDatabase(), startFakeUpstream()]);
    one = await startProcess();
    two = await startProcess();
  }, 60_000);
  afterAll(async () => {
    await Promise.all([one.close(), two.close()]);
    await Promise.all([upstream.close(), shared.drop(), ...dataDirs.map((path) => rm(path, { recursive: true }))]);
  });

  async function statusOf(app: TestApp, person: Person): Promise<number> {
    const response = await fetch(`${app.baseUrl}/account/keys`, { headers: signedIn(person) });
    await response.arrayBuffer();
    return response.status;
  }

  function request(app: TestApp, person: Person, method: string, path: string): Promise<Response> {
    return fetch(`${app.baseUrl}${path}`, { method, headers: signedIn(person) });
  }

  it("know a session that the other has made, and end it together", async () => {
    const person = await signUp(one);
    const other = await signIn(two, person);
    expect(await Promise.all([statusOf(one, other), statusOf(two, person)])).toEqual([200, 200]);

    const revoked = await request(one, person, "DELETE", `/account/sessions/${other.sessionId}`);

    expect(revoked.status).toBe(200);
    // The cache would forget it by itself in the end; that it hears of it is what the next test shows.
    await expect.poll(() => statusOf(two, other), { timeout: 10_000, interval: 20 }).toBe(401);
    expect(await statusOf(one, other)).toBe(401);
  });

  it("notify each other of ended sessions", async () => {
    const person = await signUp(one);
    expect(await statusOf(two, person)).toBe(200);
    const heard = new Promise<string>((resolve) => {
      const stop = two.services.sessions.onChanged(person.sessionId, () => {
        stop();
        resolve(person.sessionId);
      });
    });

    await one.services.sessions.end(person.accountId);

    expect(await heard).toBe(person.sessionId);
    expect(await statusOf(two, person)).toBe(401);
  });
});
