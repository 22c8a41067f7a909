/** Secrets that only this deployment knows, all derived from its one encryption key. */
import { createHash, createHmac, hkdfSync } from "node:crypto";
import { StartError } from "../../lib/start-error.js";
import type { Database } from "../../store/database.js";

/** 32 bytes, others for each purpose. */
export type DeriveSecret = (purpose: string) => Buffer;

const PEPPER_FINGERPRINT = "api-key-pepper-fingerprint";

/** What the database knows a key by. */
export function hashApiKey(pepper: Buffer, key: string): Buffer {
  return createHmac("sha256", pepper).update(key).digest();
}

export function secretsOf(encryptionKey: string): DeriveSecret {
  return (purpose) => Buffer.from(hkdfSync("sha256", encryptionKey, "", `sluice ${purpose}`, 32));
}

/**
 * The secret that API keys are hashed under, derived from ENCRYPTION_KEY. The database remembers its fingerprint: under
 * another key every API key would be unknown, which is better said at the start.
 */
export async function pepperOf(deriveSecret: DeriveSecret, database: Pick<Database, "prisma">): Promise<Buffer> {
  const pepper = deriveSecret("api key pepper");
  const fingerprint = createHash("sha256").update(pepper).digest("hex").slice(0, 16);
  const { deploymentSetting } = database.prisma;
  // Of several processes that start on one empty database at once, one writes it.
  await deploymentSetting.createMany({ data: { name: PEPPER_FINGERPRINT, value: fingerprint }, skipDuplicates: true });
  const stored = await deploymentSetting.findUniqueOrThrow({ where: { name: PEPPER_FINGERPRINT } });
  if (stored.value !== fingerprint) {
    throw new StartError("ENCRYPTION_KEY (or secrets.json in DATA_DIR) is not the one that this database's API keys were made with.");
  }
  return pepper;
}
