/** Stored device authorizations: create, find by either code, delete. */
import { createHmac, randomBytes, randomInt } from "node:crypto";
import ipaddr from "ipaddr.js";
import type { RequestContext } from "../../context.js";
import { invalidInput, rateLimited } from "../../errors.js";
import { addressGroupOf } from "../../lib/client-address.js";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import type { BucketRule, Counters } from "../../store/counters.js";
import type { Database } from "../../store/database.js";
import type { DeviceAuthorizationModel } from "../../store/generated/prisma/models.js";
import {
  DEVICE_CODE_SECONDS,
  DEVICE_CODES_SWEPT_AT_ONCE_MAX,
  DEVICE_POLL_SECONDS,
  EXPIRED_DEVICE_CODE_KEPT_SECONDS,
  LIVE_DEVICE_CODES_MAX,
  LIVE_DEVICE_CODES_PER_ADDRESS_MAX,
  USER_CODE_GUESSES_PER_ADDRESS_PER_MINUTE,
  USER_CODE_GUESSES_PER_MINUTE,
} from "./limits.js";

// User codes, which identify a device when a person types them (RFC 8628 6.1).

/** Consonants that are hard to confuse and spell no words. */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const LENGTH = 8;
/** Separators that people type, or that phones append. */
const SEPARATORS = /[\s\p{Pd}]/gu;
const PATTERN = new RegExp(`^[${LETTERS}]{${LENGTH}}$`);

/** The stored form: eight letters, 34.5 bits. */
export function createUserCode(): string {
  return Array.from({ length: LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("");
}

/** The shown form: XXXX-XXXX. */
export function formatUserCode(userCode: string): string {
  return `${userCode.slice(0, LENGTH / 2)}-${userCode.slice(LENGTH / 2)}`;
}

/** Whether the text has the shown form. */
export function isUserCode(text: string): boolean {
  const userCode = text.replace("-", "");
  return PATTERN.test(userCode) && formatUserCode(userCode) === text;
}

/** Converts typed text to the stored form; any case, with or without dash and spaces. Throws BAD_REQUEST for text that cannot be a code. */
export function parseUserCode(typed: string): string {
  const userCode = typed.replace(SEPARATORS, "").toUpperCase();
  if (!PATTERN.test(userCode))
    throw invalidInput("Enter the eight letters of the code, such as BCDF-GHJK. Codes have no vowels and no digits.", "userCode");
  return userCode;
}

/** A person may still decide, or the device still fetch its key. */
const LIVE_STATUSES = ["pending", "approved"] as const;

/** Draws of a user code until one is free; among 20^8 codes even one collision is rare. */
const DRAWS_MAX = 5;

export interface NewDeviceAuthorization {
  readonly clientAddress: string;
  readonly appKeyId: string | null;
  readonly scope: readonly string[];
  readonly marginPercent: number;
}

export class DeviceCodes {
  constructor(
    private readonly database: Database,
    private readonly secret: Buffer,
    private readonly clock: Clock,
  ) {}

  /** Rejects with RATE_LIMITED while too many codes are live. */
  async create(wanted: NewDeviceAuthorization): Promise<{ row: DeviceAuthorizationModel; deviceCode: string }> {
    await this.sweep();
    const deviceCode = randomBytes(32).toString("base64url");
    const clientAddress = toStoredAddress(wanted.clientAddress);
    for (let draw = 1; ; draw += 1) {
      const row = await this.insert({ ...wanted, clientAddress }, deviceCode, createUserCode());
      if (row !== null) return { row, deviceCode };
      if (draw === DRAWS_MAX) throw new Error(`No free user code in ${DRAWS_MAX} draws.`);
    }
  }

  findByDeviceCode(deviceCode: string): Promise<DeviceAuthorizationModel | null> {
    return this.database.prisma.deviceAuthorization.findUnique({ where: { deviceCodeHash: this.hash(deviceCode) } });
  }

  findByUserCode(userCode: string): Promise<DeviceAuthorizationModel | null> {
    return this.database.prisma.deviceAuthorization.findUnique({ where: { userCode } });
  }

  /** Deletes those that expired a while ago; resolves with their number. */
  async sweep(): Promise<number> {
    const before = new Date(this.clock.now().getTime() - EXPIRED_DEVICE_CODE_KEPT_SECONDS * 1000);
    return this.database.prisma.$executeRaw`
      DELETE FROM device_authorization WHERE id IN (
        SELECT id FROM device_authorization WHERE expires_at < ${before} ORDER BY expires_at LIMIT ${DEVICE_CODES_SWEPT_AT_ONCE_MAX}
        FOR UPDATE SKIP LOCKED)`;
  }

  /** Null when the user code is taken. */
  private async insert(wanted: NewDeviceAuthorization, deviceCode: string, userCode: string): Promise<DeviceAuthorizationModel | null> {
    const { prisma } = this.database;
    const now = this.clock.now();
    const { clientAddress, appKeyId, scope, marginPercent } = wanted;
    const group = addressPrefixOf(clientAddress);
    const id = createId();
    const expiresAt = new Date(now.getTime() + DEVICE_CODE_SECONDS * 1000);
    // One at a time for each address, so that concurrent requests count each other.
    await prisma.$transaction([
      prisma.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended(${`device-codes ${group.text}`}, 0))`,
      prisma.$executeRaw`
        INSERT INTO device_authorization
          (id, device_code_hash, user_code, app_key_id, scope, margin_percent, interval_seconds, client_address, created_at, expires_at)
        SELECT ${id}::uuid, ${this.hash(deviceCode)}, ${userCode}, ${appKeyId}::uuid, ${[...scope]}::text[], ${marginPercent}, ${DEVICE_POLL_SECONDS},
          ${clientAddress}, ${now}, ${expiresAt}
        WHERE (SELECT count(*) FROM (SELECT FROM device_authorization
            WHERE expires_at > ${now} AND status IN ('pending', 'approved')
              AND CASE WHEN ${group.isPrefix} THEN starts_with(client_address, ${group.text}) ELSE client_address = ${group.text} END
            LIMIT ${LIVE_DEVICE_CODES_PER_ADDRESS_MAX}) AS own) < ${LIVE_DEVICE_CODES_PER_ADDRESS_MAX}
          AND (SELECT count(*) FROM (SELECT FROM device_authorization
            WHERE expires_at > ${now} AND status IN ('pending', 'approved')
            LIMIT ${LIVE_DEVICE_CODES_MAX}) AS live) < ${LIVE_DEVICE_CODES_MAX}
        ON CONFLICT (user_code) DO NOTHING`,
    ]);
    const row = await prisma.deviceAuthorization.findUnique({ where: { id } });
    if (row === null) await this.assertRoom(group, now);
    return row;
  }

  /** Throws RATE_LIMITED when the address or the process has too many live codes. */
  private async assertRoom({ text, isPrefix }: AddressPrefix, now: Date): Promise<void> {
    const live = { expiresAt: { gt: now }, status: { in: [...LIVE_STATUSES] } };
    const own = await this.database.prisma.deviceAuthorization.findMany({
      where: { ...live, clientAddress: isPrefix ? { startsWith: text } : text },
      select: { expiresAt: true },
      orderBy: { expiresAt: "asc" },
      take: LIVE_DEVICE_CODES_PER_ADDRESS_MAX,
    });
    if (own.length >= LIVE_DEVICE_CODES_PER_ADDRESS_MAX) {
      throw tooMany("Too many device requests are pending from this address.", own[0]?.expiresAt, now);
    }
    const all = await this.database.prisma.deviceAuthorization.count({ where: live, take: LIVE_DEVICE_CODES_MAX });
    if (all >= LIVE_DEVICE_CODES_MAX) throw tooMany("Too many device requests are pending.", undefined, now);
  }

  private hash(deviceCode: string): Uint8Array<ArrayBuffer> {
    return new Uint8Array(createHmac("sha256", this.secret).update(deviceCode).digest());
  }
}

function tooMany(message: string, freeAt: Date | undefined, now: Date): Error {
  return rateLimited(message, freeAt ? (freeAt.getTime() - now.getTime()) / 1000 : 60);
}

/** One text for one address: IPv4 as such, IPv6 with all eight parts. */
function toStoredAddress(address: string): string {
  if (!ipaddr.isValid(address)) return address.replaceAll("\0", "").slice(0, 100);
  return ipaddr.process(address).toNormalizedString();
}

interface AddressPrefix {
  readonly text: string;
  /** False: the whole address. */
  readonly isPrefix: boolean;
}

/** The common prefix of stored addresses that are counted together; see `addressGroupOf`. */
function addressPrefixOf(stored: string): AddressPrefix {
  const group = addressGroupOf(stored);
  return group.endsWith("::/64") ? { text: `${group.slice(0, -"::/64".length)}:`, isPrefix: true } : { text: group, isPrefix: false };
}

// Limits wrong user codes (RFC 8628 5.1) by account, and by client address for people with many accounts. A guess is counted before the
// look-up and given back when it was right, so that a thousand concurrent guesses are not all looked up. A caller without guesses left is
// refused even with the right code.

const MINUTES_PER_HOUR = 60;

const PER_ACCOUNT = perMinute(USER_CODE_GUESSES_PER_MINUTE);
const PER_ADDRESS = perMinute(USER_CODE_GUESSES_PER_ADDRESS_PER_MINUTE);

export class UserCodeGuesses {
  constructor(private readonly counters: Counters) {}

  /** Resolves with the result of `look`; null is a wrong guess. Rejects with RATE_LIMITED. */
  async count<Found>(ctx: RequestContext, accountId: string, look: () => Promise<Found | null>): Promise<Found | null> {
    const account = `user-code:account:${accountId}`;
    const address = `user-code:address:${addressGroupOf(ctx.clientAddress)}`;
    await this.take(PER_ACCOUNT, account);
    await this.take(PER_ADDRESS, address);
    const found = await look();
    if (found !== null)
      await Promise.all([this.counters.take(PER_ACCOUNT, account, -1, null), this.counters.take(PER_ADDRESS, address, -1, null)]);
    return found;
  }

  private async take(rule: BucketRule, name: string): Promise<void> {
    const wait = await this.counters.take(rule, name, 1, 1);
    if (wait > 0) throw rateLimited("Too many wrong codes. Wait a moment, then check the code on your device.", wait / 1000);
  }
}

function perMinute(guesses: number): BucketRule {
  return { capacity: guesses, perHour: guesses * MINUTES_PER_HOUR };
}
