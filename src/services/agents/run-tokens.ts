/**
 * Run tokens (docs/spec/agents.md#run-tokens): the credential of an agent run, which acts as its caller. A token is signed and not stored.
 * It holds the caller, the agent's generation and an expiry, and has at any moment the rights of the caller's key or session.
 *
 * `ag_` + 106 characters of base64url: one byte for the kind of caller and the run's safety features, 16 for the key's or session's id, 16
 * for the generation's, 6 for the time, 8 for the cost limit, and the HMAC-SHA-256 of those.
 */
import { parse, stringify } from "uuid";
import type { KeyCaller, SessionCaller } from "../../context.js";
import { isWellFormedRunToken, RUN_TOKEN_PREFIX } from "../../lib/api-key-format.js";
import type { Clock } from "../../lib/clock.js";
import { isSignedWith, type RotatingSecret, signWith } from "../../lib/rotating-secret.js";
import { RUN_TOKEN_MS } from "../../limits.js";
import type { ApiKeyCache } from "../api-keys/api-key-cache.js";
import { runTokenRefused } from "../api-keys/key-refusals.js";
import { SAFETY_FEATURES, type SafetyFeature } from "../catalog/model.js";
import type { SessionDirectory } from "../sessions/session-directory.js";
import type { BoundedRun } from "./run-limits.js";

type Principal = KeyCaller | SessionCaller;

const KINDS: readonly Principal["kind"][] = ["key", "session"];
const ID_BYTES = 16;
const TIME_BYTES = 6;
const COST_BYTES = 8;
const CLAIMS_BYTES = 1 + 2 * ID_BYTES + TIME_BYTES + COST_BYTES;

export class RunTokens {
  constructor(
    private readonly secret: RotatingSecret,
    private readonly apiKeys: Pick<ApiKeyCache, "findById">,
    private readonly sessions: Pick<SessionDirectory, "findById">,
    private readonly clock: Clock,
  ) {}

  /** Good for 30 minutes. */
  issue(caller: Principal, { parentRequestId, maxCost, safetyFeatures = [] }: BoundedRun): string {
    const claims = Buffer.alloc(CLAIMS_BYTES);
    claims.writeUInt8(KINDS.indexOf(caller.kind) | (toBits(safetyFeatures) << 1), 0);
    claims.set(parse(caller.kind === "key" ? caller.apiKeyId : caller.sessionId), 1);
    claims.set(parse(parentRequestId), 1 + ID_BYTES);
    claims.writeUIntBE(this.clock.now().getTime() + RUN_TOKEN_MS, 1 + 2 * ID_BYTES, TIME_BYTES);
    claims.writeBigUInt64BE(maxCost > 0n ? maxCost : 0n, CLAIMS_BYTES - COST_BYTES);
    return RUN_TOKEN_PREFIX + Buffer.concat([claims, signWith(this.secret, claims)]).toString("base64url");
  }

  /**
   * Resolves the caller of a token, as an agent run. Synchronous when cached, else a promise. Throws or rejects with UNAUTHORIZED for a
   * forged or expired token, and when the caller's key or session is no longer good.
   */
  resolve(token: string): Principal | Promise<Principal> {
    if (!isWellFormedRunToken(token)) throw runTokenRefused();
    const bytes = Buffer.from(token.slice(RUN_TOKEN_PREFIX.length), "base64url");
    const claims = bytes.subarray(0, CLAIMS_BYTES);
    if (!isSignedWith(this.secret, claims, bytes.subarray(CLAIMS_BYTES))) throw runTokenRefused();
    if (claims.readUIntBE(1 + 2 * ID_BYTES, TIME_BYTES) <= this.clock.now().getTime()) throw runTokenRefused();
    const id = stringify(claims.subarray(1, 1 + ID_BYTES));
    const run = {
      parentRequestId: stringify(claims.subarray(1 + ID_BYTES, 1 + 2 * ID_BYTES)),
      maxCost: claims.readBigUInt64BE(CLAIMS_BYTES - COST_BYTES),
      safetyFeatures: fromBits(claims.readUInt8(0) >> 1),
    };
    if (KINDS[claims.readUInt8(0) & 1] === "session") return this.findSession(id).then((caller) => ({ ...caller, run }));
    const caller = this.apiKeys.findById(id);
    return caller instanceof Promise ? caller.then((found) => ({ ...found, run })) : { ...caller, run };
  }

  private async findSession(id: string): Promise<SessionCaller> {
    const caller = await this.sessions.findById(id);
    if (!caller) throw runTokenRefused();
    return caller;
  }
}

/** One bit per feature, in the order of the list. */
function toBits(features: readonly string[]): number {
  return SAFETY_FEATURES.reduce((bits, feature, place) => (features.includes(feature) ? bits | (1 << place) : bits), 0);
}

function fromBits(bits: number): readonly SafetyFeature[] {
  return SAFETY_FEATURES.filter((_, place) => (bits & (1 << place)) !== 0);
}
