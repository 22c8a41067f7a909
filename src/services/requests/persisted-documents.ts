/**
 * GraphQL documents requested by SHA-256 (docs/graphql.md#documents-by-their-digest): the operator's, from a manifest, and those that
 * clients register. The manifest is never evicted; with `isOnly` other documents are refused.
 *
 * A caller cannot evict the documents of others: documents are small, registrations per day are limited, and the limit is a quarter of a
 * process's room. A document beyond the limit is executed, and not kept.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { addressGroupOf } from "../../lib/client-address.js";
import { StartError } from "../../lib/start-error.js";
import type { Counters } from "../../store/counters.js";
import { DOCUMENT_SECONDS, type DocumentStore } from "../../store/documents.js";
import { DOCUMENT_BYTES_MAX, DOCUMENTS_PER_CALLER_MAX } from "./limits.js";

export interface PersistedDocumentSettings {
  /** Null: this repository's `schema/persisted.json`. */
  readonly file: string | null;
  /** Refuses all other documents. */
  readonly isOnly: boolean;
}

/** By SHA-256 in hexadecimal. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/** Lower case, as clients write it. */
export const DIGEST_PATTERN = /^[0-9a-f]{64}$/;

const REGISTRATIONS = { name: "documents", max: DOCUMENTS_PER_CALLER_MAX, seconds: DOCUMENT_SECONDS } as const;

export class PersistedDocuments {
  constructor(
    private readonly trusted: TrustedDocuments,
    private readonly registered: DocumentStore,
    private readonly counters: Counters,
    readonly isOnly: boolean,
  ) {}

  /** Null when unknown or not allowed. */
  async find(digest: string): Promise<string | null> {
    const trusted = this.trusted.get(digest);
    if (trusted !== undefined) return trusted;
    return this.isOnly ? null : this.registered.find(digest);
  }

  isTrusted(digest: string): boolean {
    return this.trusted.has(digest);
  }

  /** Keeps a valid document with this digest, if the caller has room. Never rejects, and need not be awaited. */
  async register(ctx: RequestContext, digest: string, text: string): Promise<void> {
    if (this.isOnly || this.trusted.has(digest) || this.registered.has(digest) || Buffer.byteLength(text) > DOCUMENT_BYTES_MAX) return;
    try {
      if ((await this.counters.count(REGISTRATIONS, registrantOf(ctx))) === 0) await this.registered.keep(digest, text);
    } catch (error) {
      ctx.log.warn({ err: error }, "a document was not registered");
    }
  }
}

export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** A publishable key is public, so its registrations are counted per address. */
function registrantOf({ caller, clientAddress }: RequestContext): string {
  if (caller.kind === "anonymous") return addressGroupOf(clientAddress);
  if (caller.kind === "key" && caller.apiKeyType === "publishable") return `${caller.apiKeyId}:${addressGroupOf(clientAddress)}`;
  return caller.accountId;
}

/** Rejects with a StartError for a faulty manifest; without the file there are no trusted documents. */
export async function readTrustedDocuments({ file, isOnly }: PersistedDocumentSettings): Promise<TrustedDocuments> {
  const path = file ?? fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? `../../../${OWN_FILE}` : `../${OWN_FILE}`, import.meta.url));
  const documents = parseManifest(path, await readText(path, file !== null || isOnly));
  if (isOnly && documents.size === 0) throw new StartError(`GRAPHQL_PERSISTED_ONLY is set, and ${path} holds no document.`);
  return documents;
}

const OWN_FILE = "schema/persisted.json";
const manifest = z.record(z.string().regex(DIGEST_PATTERN, "must be a SHA-256 in hexadecimal digits"), z.string());

async function readText(path: string, isNeeded: boolean): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (!isNeeded) return "{}";
    throw new StartError(`The manifest of GraphQL documents cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function parseManifest(path: string, text: string): TrustedDocuments {
  let stated: unknown;
  try {
    stated = JSON.parse(text);
  } catch {
    throw new StartError(`The manifest of GraphQL documents ${path} is not valid JSON.`);
  }
  const parsed = manifest.safeParse(stated);
  if (!parsed.success) throw new StartError(`The manifest of GraphQL documents ${path} must map the SHA-256 of each document to its text.`);
  const documents = new Map(Object.entries(parsed.data));
  for (const [digest, document] of documents) {
    if (digestOf(document) !== digest)
      throw new StartError(`The document ${digest} of ${path} has another SHA-256: ${digestOf(document)}.`);
  }
  return documents;
}
