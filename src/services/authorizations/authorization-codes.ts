/**
 * Authorization codes: an app with a challenge gets one instead of a key, and exchanges it with the verifier (RFC 6749 4.1.3, RFC 7636). A
 * code is stored as an HMAC and works once; using it again revokes its key.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { AppError } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database, DatabaseClient } from "../../store/database.js";
import type { AuthorizationCodeModel } from "../../store/generated/prisma/models.js";
import type { ProtectedResources } from "../access/protected-resources.js";
import type { ApiKeys, KeyGrant } from "../api-keys/api-keys.js";
import { fromStoredTerms, type GrantablePermission, type StoredTerms, toStoredTerms } from "../api-keys/grant-terms.js";
import type { KeyWriter } from "../api-keys/key-maker.js";
import type { Apps } from "./apps.js";
import { AUTHORIZATION_CODE_ATTEMPTS_MAX, AUTHORIZATION_CODE_KEPT_HOURS, AUTHORIZATION_CODE_SECONDS } from "./limits.js";
import { OAuthError } from "./oauth-error.js";
import { pkceText, resourceText } from "./request-input.js";

const CODE_BYTES = 32;
const TEXT_CHARS_MAX = 4_096;

/** Named as in RFC 6749 4.1.3; other fields are ignored. */
export const exchangeCodeInput = z.object({
  code: z.string().min(1).max(TEXT_CHARS_MAX),
  redirect_uri: z.string().min(1).max(TEXT_CHARS_MAX),
  client_id: z.string().max(TEXT_CHARS_MAX).optional(),
  code_verifier: pkceText,
  resource: resourceText.optional(),
});
export type ExchangeCodeInput = z.output<typeof exchangeCodeInput>;

export interface CodeGrant {
  readonly grant: KeyGrant;
  /** Of a client without an app key; null: none. */
  readonly clientId: string | null;
  readonly redirectUrl: string;
  readonly codeChallenge: string;
}

export interface IssuedToken {
  readonly accessToken: string;
  readonly scope: readonly GrantablePermission[];
  /** Seconds. */
  readonly expiresIn: number;
}

type CodeTransaction = Pick<DatabaseClient, "authorizationCode" | "$queryRaw"> & KeyWriter;
type Outcome =
  | { readonly kind: "issued"; readonly token: IssuedToken; readonly accountId: string; readonly apiKeyId: string }
  | { readonly kind: "refused"; readonly error: OAuthError; readonly stolen?: { readonly accountId: string; readonly apiKeyId: string } };

export class AuthorizationCodes {
  constructor(
    private readonly database: Database,
    private readonly secret: Buffer,
    private readonly apiKeys: ApiKeys,
    private readonly apps: Apps,
    private readonly resources: ProtectedResources,
    private readonly clock: Clock,
  ) {}

  /** Issues a code, whose text is not stored. Not exposed by GraphQL or REST: a person has approved. */
  async issue(
    { grant, clientId, redirectUrl, codeChallenge }: CodeGrant,
    writer: Pick<DatabaseClient, "authorizationCode">,
  ): Promise<string> {
    const code = randomBytes(CODE_BYTES).toString("base64url");
    const now = this.clock.now();
    const { name, terms, resource = null } = grant;
    await writer.authorizationCode.deleteMany({ where: { expiresAt: { lt: later(now, -AUTHORIZATION_CODE_KEPT_HOURS * 3600) } } });
    await writer.authorizationCode.create({
      data: {
        hash: this.hash(code),
        accountId: grant.accountId,
        appKeyId: grant.appKeyId,
        redirectUrl,
        codeChallenge,
        grant: { name, terms: toStoredTerms(terms), clientId, resource } satisfies StoredGrant as object,
        createdAt: now,
        expiresAt: later(now, AUTHORIZATION_CODE_SECONDS),
      },
    });
    return code;
  }

  /** Exchanges a code for a key. Needs no caller: code and verifier are the credential. Rejects with an OAuthError. */
  async exchange(_ctx: RequestContext, input: ExchangeCodeInput): Promise<IssuedToken> {
    // Before the transaction: in one, another connection of the embedded database would wait for its end.
    const app = input.client_id === undefined ? null : await this.apps.findByKey(input.client_id);
    const client = app?.id ?? null;
    const { prisma } = this.database;
    const outcome = await prisma.$transaction((transaction) => this.decide(input, client, transaction)).catch(refuse);
    if (outcome.kind === "issued") {
      this.apiKeys.announceGranted(outcome.accountId, outcome.apiKeyId);
      return outcome.token;
    }
    if (outcome.stolen) await this.apiKeys.revokeGranted(outcome.stolen.accountId, outcome.stolen.apiKeyId);
    throw outcome.error;
  }

  /** Returns a refusal instead of throwing it, so that the transaction commits the counted attempt. */
  private async decide(input: ExchangeCodeInput, client: string | null, transaction: CodeTransaction): Promise<Outcome> {
    const hash = this.hash(input.code);
    // Concurrent exchanges run one at a time.
    await transaction.$queryRaw`SELECT 1 FROM authorization_code WHERE hash = ${hash} FOR UPDATE`;
    const row = await transaction.authorizationCode.findUnique({ where: { hash } });
    if (!row) return refused("The code is unknown.");
    if (row.usedAt !== null) {
      const { accountId, apiKeyId } = row;
      const used = refused("The code has been used. The key that it was exchanged for is revoked.");
      return apiKeyId === null ? used : { ...used, stolen: { accountId, apiKeyId } };
    }
    if (row.expiresAt <= this.clock.now()) return refused("The code has expired.");
    if (row.failedAttempts >= AUTHORIZATION_CODE_ATTEMPTS_MAX) return refused("The code has been tried too often.");
    const { name, terms: stored, clientId = null, resource: granted = null } = row.grant as unknown as StoredGrant;
    const objection = objectionTo(row, input, client, clientId) ?? this.objectionToResource(granted, input.resource);
    if (objection !== null) {
      await transaction.authorizationCode.update({ where: { hash }, data: { failedAttempts: { increment: 1 } } });
      return { kind: "refused", error: objection };
    }
    const { accountId, appKeyId } = row;
    const terms = fromStoredTerms(stored);
    const resource = input.resource === undefined ? granted : this.resources.read(input.resource);
    const grant = { accountId, appKeyId, origin: "redirect_flow", name, terms, resource } as const;
    const { apiKey, key } = await this.apiKeys.mintGranted(grant, transaction);
    await transaction.authorizationCode.update({ where: { hash }, data: { usedAt: this.clock.now(), apiKeyId: apiKey.id } });
    return {
      kind: "issued",
      accountId,
      apiKeyId: apiKey.id,
      token: { accessToken: key, scope: terms.permissions, expiresIn: terms.expiresInDays * 24 * 3600 },
    };
  }

  /** A token may be for less than was granted, not for more (RFC 8707 2.2). */
  private objectionToResource(granted: string | null, text: string | undefined): OAuthError | null {
    if (text === undefined) return null;
    const asked = this.resources.read(text);
    if (asked !== null && this.resources.covers(granted, asked)) return null;
    const description = asked === null ? this.resources.refusal : "The code was asked for with another resource.";
    return new OAuthError("invalid_target", description, "resource");
  }

  private hash(code: string): Uint8Array<ArrayBuffer> {
    return new Uint8Array(createHmac("sha256", this.secret).update(code).digest());
  }
}

/** Terms of the future key that have no column. */
interface StoredGrant {
  readonly name: string;
  readonly terms: StoredTerms;
  /** Absent in codes of an older process, as is `resource`. */
  readonly clientId?: string | null;
  readonly resource?: string | null;
}

/** The account has its maximum of keys, or was suspended since the approval; the code stays good. */
function refuse(error: unknown): never {
  const isRefused = error instanceof AppError && (error.code === "CONFLICT" || error.code === "ACCOUNT_SUSPENDED");
  throw isRefused ? new OAuthError("access_denied", error.message) : error;
}

function refused(description: string): { readonly kind: "refused"; readonly error: OAuthError } {
  return { kind: "refused", error: new OAuthError("invalid_grant", description, "code") };
}

/** `app` is the requesting app, by its app key; `clientId` is the id of another client that the code was asked for with. */
function objectionTo(
  row: AuthorizationCodeModel,
  input: ExchangeCodeInput,
  app: string | null,
  clientId: string | null,
): OAuthError | null {
  if (clientId !== null && clientId !== input.client_id) {
    return new OAuthError("invalid_client", "client_id is not the one that the code was asked for with.", "client_id");
  }
  if (row.appKeyId !== null && row.appKeyId !== app) {
    return new OAuthError("invalid_client", "client_id is not the app key that the code was asked for with.", "client_id");
  }
  if (row.redirectUrl !== input.redirect_uri) {
    return new OAuthError("invalid_grant", "redirect_uri is not the address that the code was asked for with.", "redirect_uri");
  }
  if (!answersChallenge(input.code_verifier, row.codeChallenge)) {
    return new OAuthError("invalid_grant", "code_verifier does not fit the code_challenge.", "code_verifier");
  }
  return null;
}

/** Checks the verifier by S256 (RFC 7636 4.6). */
function answersChallenge(verifier: string, challenge: string): boolean {
  const computed = Buffer.from(createHash("sha256").update(verifier).digest("base64url"));
  const expected = Buffer.from(challenge);
  return computed.length === expected.length && timingSafeEqual(computed, expected);
}

function later(time: Date, seconds: number): Date {
  return new Date(time.getTime() + seconds * 1000);
}
