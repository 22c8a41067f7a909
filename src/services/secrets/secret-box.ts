/**
 * Encrypts secrets in database columns: AES-256-GCM under this deployment's key (docs/spec/community-models.md#credentials).
 *
 * Bytes: 1 version, 4 key id, 12 random IV, 16 tag, then the ciphertext. Its place is authenticated, so that a ciphertext cannot be opened
 * in another row, column or table.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import type { RotatingSecret } from "../../lib/rotating-secret.js";

/** Where a sealed value is stored. */
export interface SecretPlace {
  readonly table: string;
  readonly rowId: string;
  readonly column: string;
}

const VERSION = 1;
const KEY_ID_BYTES = 4;
/** NIST SP 800-38D: 96 bits, and the full tag. */
const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const HEAD_BYTES = 1 + KEY_ID_BYTES + IV_BYTES + TAG_BYTES;

interface KnownKeys {
  readonly list: readonly Buffer[];
  readonly current: Buffer;
  readonly currentId: Buffer;
  /** By key id in hexadecimal digits. */
  readonly byId: ReadonlyMap<string, Buffer>;
}

export class SecretBox {
  private known: KnownKeys;

  /** The first secret seals; all of them open. */
  constructor(private readonly secret: RotatingSecret) {
    this.known = index(secret());
  }

  private get keys(): KnownKeys {
    const list = this.secret();
    if (list !== this.known.list) this.known = index(list);
    return this.known;
  }

  seal(place: SecretPlace, text: string): Uint8Array<ArrayBuffer> {
    const iv = randomBytes(IV_BYTES);
    const { current, currentId } = this.keys;
    const cipher = createCipheriv("aes-256-gcm", current, iv, { authTagLength: TAG_BYTES });
    cipher.setAAD(associatedData(place));
    const ciphertext = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
    return new Uint8Array(Buffer.concat([Buffer.of(VERSION), currentId, iv, cipher.getAuthTag(), ciphertext]));
  }

  /** Throws when it was changed, sealed for another place, or sealed with an unknown key. */
  open(place: SecretPlace, sealed: Uint8Array): string {
    const blob = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    if (blob.length < HEAD_BYTES || blob[0] !== VERSION) throw new Error(`${describe(place)} holds nothing that was sealed.`);
    const [ivStart, tagStart] = [1 + KEY_ID_BYTES, 1 + KEY_ID_BYTES + IV_BYTES];
    const key = this.keys.byId.get(blob.subarray(1, ivStart).toString("hex"));
    if (!key) throw new Error(`${describe(place)} was sealed with a key that is not known.`);
    const decipher = createDecipheriv("aes-256-gcm", key, blob.subarray(ivStart, tagStart), { authTagLength: TAG_BYTES });
    decipher.setAAD(associatedData(place));
    decipher.setAuthTag(blob.subarray(tagStart, HEAD_BYTES));
    try {
      return Buffer.concat([decipher.update(blob.subarray(HEAD_BYTES)), decipher.final()]).toString("utf8");
    } catch (cause) {
      throw new Error(`${describe(place)} was changed, or sealed for another place.`, { cause });
    }
  }

  /** Of the key that seals: the bytes after the version. */
  get keyId(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.keys.currentId);
  }
}

function index(list: readonly [Buffer, ...Buffer[]]): KnownKeys {
  if (list.some((key) => key.length !== KEY_BYTES)) throw new TypeError(`A key has ${KEY_BYTES} bytes.`);
  const byId = new Map(list.map((key) => [keyIdOf(key).toString("hex"), key]));
  return { list, current: list[0], currentId: keyIdOf(list[0]), byId };
}

function keyIdOf(key: Buffer): Buffer {
  return createHash("sha256").update("key id").update(key).digest().subarray(0, KEY_ID_BYTES);
}

function associatedData({ table, rowId, column }: SecretPlace): Buffer {
  return Buffer.from(`${table}|${rowId}|${column}|${VERSION}`);
}

function describe({ table, column, rowId }: SecretPlace): string {
  return `${table}.${column} of ${rowId}`;
}
