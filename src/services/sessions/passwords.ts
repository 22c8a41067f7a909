/**
 * Password hashes: scrypt in the sign-in library's format and with its parameters, but on the thread pool instead of the event loop, and a
 * few at once, so that a flood of sign-ins delays only sign-ins.
 */
import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { serviceUnavailable } from "../../errors.js";
import { PASSWORD_HASHES_AT_ONCE, PASSWORD_HASHES_WAITING_MAX } from "./limits.js";

/** scrypt's r: with N=2^14 it costs as much as N=2^15, r=8 of the OWASP Password Storage Cheat Sheet. */
const BLOCK_SIZE = 16;
const KEY_BYTES = 64;
const SALT_BYTES = 16;
/** A longer wait outlasts most clients. */
const RETRY_AFTER_SECONDS = 5;

export class Passwords {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(
    /** scrypt's N, a power of two. Hashes with another N cannot be verified. */
    private readonly cost: number,
    private readonly atOnceMax = PASSWORD_HASHES_AT_ONCE,
    private readonly waitingMax = PASSWORD_HASHES_WAITING_MAX,
  ) {}

  /** `<salt>:<key>` in hexadecimal. Rejects with SERVICE_UNAVAILABLE when too many wait. */
  async hash(password: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES).toString("hex");
    return `${salt}:${(await this.derive(password, salt)).toString("hex")}`;
  }

  /** Takes as long for a wrong password as for the right one, and as `hash`. */
  async verify(password: string, hash: string): Promise<boolean> {
    const [salt = "", key = ""] = hash.split(":");
    const stored = Buffer.from(key, "hex");
    const derived = await this.derive(password, salt);
    return stored.length === derived.length && timingSafeEqual(stored, derived);
  }

  private async derive(password: string, salt: string): Promise<Buffer> {
    await this.enter();
    try {
      // A letter and its accent typed as one character or as two give the same password.
      const text = password.normalize("NFKC");
      // Twice what scrypt needs (RFC 7914); Node refuses to use more.
      const options = { N: this.cost, r: BLOCK_SIZE, p: 1, maxmem: 2 * 128 * this.cost * BLOCK_SIZE };
      return await new Promise<Buffer>((resolve, reject) => {
        scrypt(text, salt, KEY_BYTES, options, (error, key) => (error ? reject(error) : resolve(key)));
      });
    } finally {
      this.leave();
    }
  }

  private async enter(): Promise<void> {
    if (this.#running < this.atOnceMax) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.length >= this.waitingMax) {
      throw serviceUnavailable("The gateway is busy with other sign-ins. Try again in a moment.", {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      });
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Passes the slot to the next waiting hash. */
  private leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running -= 1;
  }
}
