/** The key ring: made once, opened by each accepted key, rotated beside processes of the old key. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isSignedWith, signWith } from "../../../src/lib/rotating-secret.js";
import { DeploymentSecrets, isOpenedBy, openSecrets } from "../../../src/services/secrets/deployment-secrets.js";
import { deriveFrom, fingerprintOf } from "../../../src/services/secrets/key-ring.js";
import { SECRET_LEARNED_MS, SIGNATURE_MAX_MS } from "../../../src/services/secrets/limits.js";
import { createTestDatabase, type TestDatabase } from "../../support/database.js";

let test: TestDatabase;

const OLD = "the encryption key of before";
const NEW = "the encryption key of today";
const WRONG = /is not the one that this database was made with[\s\S]*ENCRYPTION_KEY_PREVIOUS[\s\S]*secrets forget/;

const open = (current: string, previous: string | null = null) => openSecrets(test.database, { current, previous });

describe("The key ring", () => {
  beforeEach(async () => {
    test = await createTestDatabase();
  });
  afterEach(() => test.close());

  it("keeps a generated key for a new database, and none for a database that was made with another", async () => {
    const kept: string[] = [];
    const start = (key: string) => openSecrets(test.database, { current: key, previous: null }, () => kept.push(key));

    await start(OLD);
    await expect(start("generated after secrets.json was lost")).rejects.toThrow(WRONG);
    await start(OLD);

    expect(new Set(kept)).toEqual(new Set([OLD]));
  });

  it("is made once by processes that start together", async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => open(OLD)));

    expect(new Set(all.map(({ secrets }) => secrets.pepper.toString("hex"))).size).toBe(1);
  });

  it("keeps the secrets of a database that an earlier version made, and refuses another key for it", async () => {
    const pepper = deriveFrom(OLD, "api key pepper");
    const { deploymentSetting } = test.database.prisma;
    await deploymentSetting.create({ data: { name: "api-key-pepper-fingerprint", value: fingerprintOf(pepper) } });

    await expect(open(NEW)).rejects.toThrow(WRONG);
    const { secrets } = await open(OLD);
    const rotated = await open(NEW, OLD);

    expect(secrets.pepper).toEqual(pepper);
    expect(secrets.sealing("columns")()).toEqual([deriveFrom(OLD, "columns")]);
    expect(rotated.secrets.pepper).toEqual(pepper);
  });

  it("rotates an earlier version's database at once", async () => {
    const pepper = deriveFrom(OLD, "api key pepper");
    const { deploymentSetting } = test.database.prisma;
    await deploymentSetting.create({ data: { name: "api-key-pepper-fingerprint", value: fingerprintOf(pepper) } });

    const { secrets, isRotating } = await open(NEW, OLD);

    expect([secrets.pepper, isRotating]).toEqual([pepper, true]);
  });

  it("is known to be opened before the first start of this version, so that a good key is not given up", async () => {
    const { deploymentSetting } = test.database.prisma;
    const opens = (current: string, previous: string | null = null) => isOpenedBy(test.database, { current, previous });

    expect(await opens(NEW)).toBe(true);
    const value = fingerprintOf(deriveFrom(OLD, "api key pepper"));
    await deploymentSetting.create({ data: { name: "api-key-pepper-fingerprint", value } });
    expect([await opens(OLD), await opens(NEW, OLD), await opens(NEW)]).toEqual([true, true, false]);
    await open(OLD);
    expect([await opens(OLD), await opens(NEW, OLD), await opens(NEW)]).toEqual([true, true, false]);
  });

  it("refuses a second rotation while the first is under way", async () => {
    await open(OLD);
    await open(NEW, OLD);

    await expect(open("a third encryption key", OLD)).rejects.toThrow(/is being replaced by another key/);
    expect([(await open(OLD)).isRotating, (await open(NEW)).isRotating]).toEqual([true, true]);
  });

  it("opens with both keys during a rotation, also when several processes begin it", async () => {
    const before = await open(OLD);

    const rotated = await Promise.all(Array.from({ length: 4 }, () => open(NEW, OLD)));
    const old = await open(OLD);

    const accepted = old.secrets.sealing("columns")();
    expect(accepted).toHaveLength(2);
    for (const { secrets, isRotating } of rotated) {
      expect(isRotating).toBe(true);
      expect(secrets.pepper).toEqual(before.secrets.pepper);
      expect(secrets.sealing("columns")()).toEqual(accepted);
    }
    await expect(open("a third encryption key")).rejects.toThrow(WRONG);
  });
});

describe("A rotated secret", () => {
  const begun = 1_000_000;
  const ring = {
    hashRoot: randomUUID(),
    roots: [
      { secret: "new root", usedFrom: begun + SECRET_LEARNED_MS },
      { secret: "old root", usedFrom: 0 },
    ] as [{ secret: string; usedFrom: number }, { secret: string; usedFrom: number }],
  };
  const at = (now: number) => new DeploymentSecrets(ring, () => now);

  it("is accepted before it signs, so that processes learn it in any order", () => {
    const early = at(begun).signing("links");
    const late = at(begun + SECRET_LEARNED_MS).signing("links");

    expect(isSignedWith(early, "text", signWith(late, "text"))).toBe(true);
    expect(isSignedWith(late, "text", signWith(early, "text"))).toBe(true);
    expect(signWith(early, "text")).not.toEqual(signWith(late, "text"));
  });

  it("ends the old one's signatures after their longest life, and still opens its sealed values", () => {
    const old = new DeploymentSecrets({ ...ring, roots: [ring.roots[1]] });
    const signature = signWith(old.signing("links"), "text");
    const end = begun + SECRET_LEARNED_MS + SIGNATURE_MAX_MS;

    expect(isSignedWith(at(end - 1).signing("links"), "text", signature)).toBe(true);
    expect(isSignedWith(at(end).signing("links"), "text", signature)).toBe(false);
    expect(at(end).sealing("columns")()).toHaveLength(2);
  });

  it("is taken up by a process that runs", () => {
    let now = begun;
    const secrets = new DeploymentSecrets(ring, () => now);
    const signing = secrets.signing("links");
    const before = signWith(signing, "text");

    now += SECRET_LEARNED_MS;
    secrets.refresh();

    expect(signWith(signing, "text")).toEqual(signWith(at(now).signing("links"), "text"));
    expect(signWith(signing, "text")).not.toEqual(before);
  });
});
