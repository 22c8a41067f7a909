/**
 * Client secrets (docs/spec/realtime.md#client-secrets): short-lived credentials for browsers, which open realtime sessions as the key that
 * made them, and do nothing else.
 *
 * A secret is sealed and not stored: `ek_` and, encrypted, the key's ID, the expiry and the settings that a session begins with. It has at any
 * moment the rights of its key, and ends with it.
 */
import * as z from "zod";
import { type Caller, isAgentAtWork, type KeyCaller, type RequestContext } from "../../../context.js";
import { credentialRefused, invalidInput, permissionDenied, wrongField } from "../../../errors.js";
import { CLIENT_SECRET_PREFIX as PREFIX } from "../../../lib/api-key-format.js";
import type { Clock } from "../../../lib/clock.js";
import {
  REALTIME_SECRET_SECONDS_DEFAULT,
  REALTIME_SECRET_SECONDS_MAX,
  REALTIME_SECRET_SECONDS_MIN,
  REALTIME_SECRET_SESSION_BYTES_MAX,
} from "../../../limits.js";
import { requireCaller } from "../../access/permissions.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { SecretBox } from "../../secrets/secret-box.js";
import { assertSettings } from "./rules.js";

type Fields = Readonly<Record<string, unknown>>;

const PLACE = { table: "realtime", rowId: "client secret", column: "value" } as const;

/** OpenAI's body. */
export const createClientSecretInput = z.object({
  expires_after: z
    .object({
      anchor: z.literal("created_at", "must be created_at").nullish(),
      seconds: z.int().min(REALTIME_SECRET_SECONDS_MIN).max(REALTIME_SECRET_SECONDS_MAX).nullish(),
    })
    .nullish()
    .describe("The time in which sessions can be opened. Default: 600 seconds."),
  session: z
    .looseObject({
      type: z.literal("realtime", "must be realtime: only conversations have a price").nullish(),
      model: z.string().min(1).max(253).nullish(),
    })
    .nullish()
    .describe("Settings with which each session begins, as in `session.update`. A `model` binds the secret to it."),
});
type CreateClientSecretInput = z.output<typeof createClientSecretInput>;

export interface ClientSecret {
  readonly value: string;
  /** Unix time in seconds. */
  readonly expiresAt: number;
  /** The only model of its sessions; null: any of the key's. */
  readonly model: string | null;
  readonly settings: Fields;
}

/** The content of a good secret. */
export interface OpenedSecret {
  readonly caller: KeyCaller;
  /** The only model of its sessions; null: any of the key's. */
  readonly model: string | null;
  /** Other settings that each session begins with; null: none. */
  readonly settings: Fields | null;
}

interface Sealed {
  readonly key: string;
  readonly until: number;
  readonly model: string | null;
  readonly settings: Fields | null;
}

interface Dependencies {
  readonly box: SecretBox;
  readonly apiKeys: { findById(id: string): KeyCaller | Promise<KeyCaller> };
  readonly catalog: Pick<Catalog, "resolve">;
  readonly clock: Clock;
}

/** True for text that can only be a client secret, good or not. */
export function isClientSecret(text: string): boolean {
  return text.startsWith(PREFIX);
}

export class RealtimeClientSecrets {
  constructor(private readonly deps: Dependencies) {}

  /** Throws FORBIDDEN without a key of its own, as a generation for the model, and BAD_REQUEST for settings that no session may have. */
  create(ctx: RequestContext, { expires_after, session }: CreateClientSecretInput): ClientSecret {
    const caller = requireKey(requireCaller(ctx));
    const { type: _, model: name = null, ...settings } = session ?? {};
    if (Buffer.byteLength(JSON.stringify(settings)) > REALTIME_SECRET_SESSION_BYTES_MAX) {
      const size = `${REALTIME_SECRET_SESSION_BYTES_MAX} bytes`;
      throw wrongField("session", `may have ${size} in a client secret: send the rest with session.update`);
    }
    const own = name === null ? null : this.deps.catalog.resolve(caller, name, "realtime");
    assertSettings(settings, own);
    const model = own?.id ?? null;
    const seconds = expires_after?.seconds ?? REALTIME_SECRET_SECONDS_DEFAULT;
    const asked = Math.floor(this.deps.clock.now().getTime() / 1000) + seconds;
    const until = caller.expiresAt === null ? asked : Math.min(asked, Math.floor(caller.expiresAt.getTime() / 1000));
    const hasSettings = Object.keys(settings).length > 0;
    const sealed: Sealed = { key: caller.apiKeyId, until, model, settings: hasSettings ? settings : null };
    const value = PREFIX + Buffer.from(this.deps.box.seal(PLACE, JSON.stringify(sealed))).toString("base64url");
    return { value, expiresAt: until, model, settings };
  }

  /** Rejects with UNAUTHORIZED for a forged or expired secret, and when its key is no longer good. */
  async open(text: string): Promise<OpenedSecret> {
    const { key, until, model, settings } = this.unseal(text);
    if (until * 1000 <= this.deps.clock.now().getTime()) {
      throw credentialRefused(`The client secret expired at ${new Date(until * 1000).toISOString()}: ask your server for another.`);
    }
    return { caller: await this.deps.apiKeys.findById(key), model, settings };
  }

  /** The model to open a session with. Throws BAD_REQUEST for another than the secret's. */
  modelOf({ caller, model }: OpenedSecret, asked: string | undefined): string | undefined {
    if (model === null || asked === undefined || this.deps.catalog.resolve(caller, asked, "realtime").id === model) return model ?? asked;
    throw invalidInput(`The client secret is for the model ${model}.`, "model");
  }

  private unseal(text: string): Sealed {
    try {
      return JSON.parse(this.deps.box.open(PLACE, Buffer.from(text.slice(PREFIX.length), "base64url"))) as Sealed;
    } catch {
      throw credentialRefused("The client secret is not valid.");
    }
  }
}

function requireKey(caller: Exclude<Caller, { readonly kind: "anonymous" }>): KeyCaller {
  if (caller.kind !== "key") throw permissionDenied("A client secret is made with an API key.");
  if (isAgentAtWork(caller)) throw permissionDenied("An agent run makes no client secrets.");
  return caller;
}
