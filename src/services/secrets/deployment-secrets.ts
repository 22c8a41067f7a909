/** Secrets of this deployment, all derived from its encryption key. */
import { createHash, createHmac, hkdfSync } from "node:crypto";
import { StartError } from "../../lib/start-error.js";
import type { Database } from "../../store/database.js";

/** 32 bytes, different for each purpose. */
export type DeriveSecret = (purpose: string) => Buffer;

const PEPPER_FINGERPRINT = "api-key-pepper-fingerprint";

/** The HMAC by which the database finds a key. */
export function hashApiKey(pepper: Buffer, key: string): Buffer {
  return createHmac("sha256", pepper).update(key).digest();
}

export function secretsOf(encryptionKey: string): DeriveSecret {
  return (purpose) => Buffer.from(hkdfSync("sha256", encryptionKey, "", `sluice ${purpose}`, 32));
}

/**
 * Derives the secret under which API keys are hashed. The database stores its fingerprint, because under another ENCRYPTION_KEY every API
 * key would be unknown, which should fail at the start. `keep` stores a generated key, unless the database was made with another one.
 */
export async function pepperOf(
  deriveSecret: DeriveSecret,
  database: Pick<Database, "prisma">,
  keep: () => void = () => undefined,
): Promise<Buffer> {
  const pepper = deriveSecret("api key pepper");
  const fingerprint = createHash("sha256").update(pepper).digest("hex").slice(0, 16);
  const { deploymentSetting } = database.prisma;
  const known = await deploymentSetting.findUnique({ where: { name: PEPPER_FINGERPRINT } });
  if (known && known.value !== fingerprint) throw wrongKey();
  keep();
  // One of several processes that start at once writes it.
  await deploymentSetting.createMany({ data: { name: PEPPER_FINGERPRINT, value: fingerprint }, skipDuplicates: true });
  const stored = await deploymentSetting.findUniqueOrThrow({ where: { name: PEPPER_FINGERPRINT } });
  if (stored.value !== fingerprint) throw wrongKey();
  return pepper;
}

function wrongKey(): StartError {
  return new StartError(
    "ENCRYPTION_KEY (or secrets.json in DATA_DIR) is not the one that this database's API keys were made with: restore it from a backup.",
  );
}
