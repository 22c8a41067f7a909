/** Secrets of this deployment, derived from the roots in its key ring. */
import { createHmac } from "node:crypto";
import type { Logger } from "pino";
import { Repeated } from "../../lib/repeated.js";
import type { RotatingSecret } from "../../lib/rotating-secret.js";
import { StartError } from "../../lib/start-error.js";
import type { DatabaseClient } from "../../store/database.js";
import { createRoot, deriveFrom, fingerprintOf, type KeyRing, openRing, readWraps, sealRing } from "./key-ring.js";
import { KEY_RING_POLL_MS, SECRET_LEARNED_MS, SIGNATURE_MAX_MS } from "./limits.js";

export interface EncryptionKeys {
  readonly current: string;
  /** Accepted while a rotation is under way; null: none. */
  readonly previous: string | null;
}

export interface SettingsDatabase {
  readonly prisma: Pick<DatabaseClient, "deploymentSetting" | "$queryRaw">;
}

const KEY_RING = "key-ring";
/** Versions without a key ring compare it with that of their encryption key. */
const PEPPER_FINGERPRINT = "api-key-pepper-fingerprint";
const PEPPER = "api key pepper";
/** Each attempt that fails was overtaken by another process. */
const ATTEMPTS_MAX = 20;

/** The HMAC by which the database finds a key. */
export function hashApiKey(pepper: Buffer, key: string): Buffer {
  return createHmac("sha256", pepper).update(key).digest();
}

export class DeploymentSecrets {
  private version = 0;
  /** Newest first, the used one before those that are not used yet. */
  private roots: readonly string[] = [];
  private signingRoots: readonly string[] = [];

  constructor(
    private ring: KeyRing,
    private readonly now: () => number = Date.now,
  ) {
    this.arrange();
  }

  /** For hashes of credentials: it never changes. */
  hashing(purpose: string): Buffer {
    return deriveFrom(this.ring.hashRoot, purpose);
  }

  get pepper(): Buffer {
    return this.hashing(PEPPER);
  }

  /** For signatures that last at most SIGNATURE_MAX_MS: replaced secrets are accepted for as long. */
  signing(purpose: string): RotatingSecret {
    return this.derived(purpose, () => this.signingRoots);
  }

  /** For values that are stored sealed. */
  sealing(purpose: string): RotatingSecret {
    return this.derived(purpose, () => this.roots);
  }

  /** When every process seals with the newest root, in milliseconds since 1970. */
  get settledAt(): number {
    return this.ring.roots[0].usedFrom + (this.ring.roots.length > 1 ? KEY_RING_POLL_MS : 0);
  }

  replace(ring: KeyRing): void {
    this.ring = ring;
    this.arrange();
  }

  /** Looks whether the newest root is to be used by now. */
  refresh(): void {
    this.arrange();
  }

  private arrange(): void {
    const now = this.now();
    const { roots } = this.ring;
    const used = roots.findIndex(({ usedFrom }) => usedFrom <= now);
    const first = used === -1 ? roots.length - 1 : used;
    const order = [...roots.slice(first, first + 1), ...roots.slice(0, first), ...roots.slice(first + 1)];
    const signing = order.filter((each) => {
      const successor = roots[roots.indexOf(each) - 1];
      return successor === undefined || successor.usedFrom + SIGNATURE_MAX_MS > now;
    });
    const arranged = [order, signing].map((list) => list.map(({ secret }) => secret));
    if (JSON.stringify(arranged) === JSON.stringify([this.roots, this.signingRoots])) return;
    [this.roots = [], this.signingRoots = []] = arranged;
    this.version += 1;
  }

  private derived(purpose: string, roots: () => readonly string[]): RotatingSecret {
    let version = -1;
    let secrets: readonly Buffer[] = [];
    return () => {
      if (version !== this.version) {
        secrets = roots().map((secret) => deriveFrom(secret, purpose));
        version = this.version;
      }
      return secrets as readonly [Buffer, ...Buffer[]];
    };
  }
}

export interface OpenedSecrets {
  readonly secrets: DeploymentSecrets;
  /** The ring is still sealed under another encryption key, too. */
  readonly isRotating: boolean;
}

/**
 * Opens the key ring with the current encryption key, or seals it under that one when only the previous one opens it. Makes the ring of a
 * new database, and of one that an earlier version made. `keep` stores a generated key; a database that was made with another one stores
 * none. Rejects with a StartError when neither key opens it.
 */
export async function openSecrets(
  database: SettingsDatabase,
  keys: EncryptionKeys,
  keep: () => void = () => undefined,
): Promise<OpenedSecrets> {
  const { deploymentSetting } = database.prisma;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const row = await deploymentSetting.findUnique({ where: { name: KEY_RING } });
    if (!row) {
      await createRing(database, keys, keep);
      continue;
    }
    const stored = readWraps(row.value);
    const ring = openRing(stored, keys.current);
    if (ring) {
      keep();
      return { secrets: new DeploymentSecrets(ring), isRotating: Object.keys(stored).length > 1 };
    }
    const previous = keys.previous === null ? null : openRing(stored, keys.previous);
    if (!previous || keys.previous === null) throw wrongKey();
    // A process with the key that it is sealed under, too, would no longer read it.
    if (Object.keys(stored).length > 1) throw otherRotation();
    const usedFrom = (await databaseTime(database)) + SECRET_LEARNED_MS;
    const rotated: KeyRing = { ...previous, roots: [{ secret: createRoot(), usedFrom }, ...previous.roots] };
    await replaceRing(database, row.value, sealRing(rotated, [keys.current, keys.previous]));
  }
  throw new Error("The key ring changed each time that it was read.");
}

/** Keeps a process's secrets those of the stored key ring. Close the result. */
export function followKeyRing(database: SettingsDatabase, encryptionKey: string, secrets: DeploymentSecrets, log: Logger): Repeated {
  return new Repeated(
    async () => {
      const stored = await readRing(database);
      const ring = stored === null ? null : openRing(readWraps(stored), encryptionKey);
      if (ring) secrets.replace(ring);
      else log.warn("ENCRYPTION_KEY was replaced: start this process again with the new one");
    },
    log,
    "the key ring could not be read",
  ).every(KEY_RING_POLL_MS);
}

/** The stored text; null: none yet. */
export async function readRing({ prisma }: SettingsDatabase): Promise<string | null> {
  return (await prisma.deploymentSetting.findUnique({ where: { name: KEY_RING } }))?.value ?? null;
}

/** False when another process replaced it meanwhile. */
export async function replaceRing({ prisma }: SettingsDatabase, stored: string, value: string): Promise<boolean> {
  const { count } = await prisma.deploymentSetting.updateMany({ where: { name: KEY_RING, value: stored }, data: { value } });
  return count > 0;
}

/** Overwrites the ring with a new one, sealed under `encryptionKey`: everything hashed or sealed with the old one is lost. */
export async function overwriteRing({ prisma }: SettingsDatabase, encryptionKey: string): Promise<DeploymentSecrets> {
  const ring = newRing();
  const secrets = new DeploymentSecrets(ring);
  for (const [name, value] of rowsOf(ring, secrets, encryptionKey)) {
    await prisma.deploymentSetting.upsert({ where: { name }, create: { name, value }, update: { value } });
  }
  return secrets;
}

/** True when the database, with or without a key ring, was made with one of these keys, or was made with none. */
export async function isOpenedBy(database: SettingsDatabase, { current, previous }: EncryptionKeys): Promise<boolean> {
  const keys = previous === null ? [current] : [current, previous];
  const stored = await readRing(database);
  if (stored !== null) return keys.some((key) => openRing(readWraps(stored), key) !== null);
  const known = await database.prisma.deploymentSetting.findUnique({ where: { name: PEPPER_FINGERPRINT } });
  return known === null || keys.some((key) => isMadeWith(known.value, key));
}

function isMadeWith(fingerprint: string, encryptionKey: string): boolean {
  return fingerprintOf(deriveFrom(encryptionKey, PEPPER)) === fingerprint;
}

async function createRing(database: SettingsDatabase, { current, previous }: EncryptionKeys, keep: () => void): Promise<void> {
  const { deploymentSetting } = database.prisma;
  const known = await deploymentSetting.findUnique({ where: { name: PEPPER_FINGERPRINT } });
  const keys = previous === null ? [current] : [current, previous];
  const maker = known && keys.find((key) => isMadeWith(known.value, key));
  if (maker === undefined) throw wrongKey();
  // An earlier version derived everything from the encryption key itself, and may run beside this one.
  const ring: KeyRing = maker === null ? newRing() : { hashRoot: maker, roots: [{ secret: maker, usedFrom: 0 }] };
  const encryptionKey = maker ?? current;
  if (encryptionKey === current) keep();
  // One of several processes that start at once writes it.
  const rows = rowsOf(ring, new DeploymentSecrets(ring), encryptionKey);
  await deploymentSetting.createMany({ data: rows.map(([name, value]) => ({ name, value })), skipDuplicates: true });
}

function newRing(): KeyRing {
  return { hashRoot: createRoot(), roots: [{ secret: createRoot(), usedFrom: 0 }] };
}

function rowsOf(ring: KeyRing, { pepper }: DeploymentSecrets, encryptionKey: string): [name: string, value: string][] {
  return [
    [KEY_RING, sealRing(ring, [encryptionKey])],
    [PEPPER_FINGERPRINT, fingerprintOf(pepper)],
  ];
}

async function databaseTime({ prisma }: SettingsDatabase): Promise<number> {
  const [row] = await prisma.$queryRaw<{ now: Date }[]>`SELECT clock_timestamp() AS now`;
  return row?.now.getTime() ?? Date.now();
}

function otherRotation(): StartError {
  return new StartError(
    "ENCRYPTION_KEY of this database is being replaced by another key than this ENCRYPTION_KEY: start with that one, or finish its rotation first (`npm run -s sluice -- secrets reseal`).",
  );
}

function wrongKey(): StartError {
  return new StartError(
    [
      "ENCRYPTION_KEY (or secrets.json in DATA_DIR) is not the one that this database was made with.",
      "Replaced on purpose? Set ENCRYPTION_KEY_PREVIOUS to the old one as well: both are accepted until `npm run -s sluice -- secrets reseal` has finished.",
      "Restored without it? Restore it from a backup.",
      "Lost? `npm run -s sluice -- secrets forget` counts the losses, and makes the gateway start with a new one.",
    ].join("\n"),
  );
}
