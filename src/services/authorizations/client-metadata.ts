/**
 * Metadata of an OAuth client (RFC 7591 2), as a stranger states it: in a registration, or in a document at the address that is its client
 * id. Clients are public and get a key for a code. Fields that are not read here, such as logos, are ignored and never shown.
 */
import * as z from "zod";
import { toShown } from "../../lib/storable-text.js";
import { readRedirectUrl } from "../api-keys/redirect-url.js";
import { storableText } from "../requests/input.js";
import { CLIENT_NAME_CHARS_MAX, CLIENT_REDIRECT_URLS_CHARS_MAX, CLIENT_REDIRECT_URLS_MAX } from "./limits.js";

/** A client that has described itself. Its name is a claim. */
export interface UnverifiedClient {
  /** As the client sends it. */
  readonly id: string;
  /** Null: it states none. */
  readonly name: string | null;
  /** At least one; the answer goes to one of them. */
  readonly redirectUrls: readonly string[];
  /** Host of its metadata document, in punycode; null: it has registered itself. */
  readonly documentHost: string | null;
}

const CODE_GRANT = "authorization_code";
const CODE_RESPONSE = "code";
const LIST_ITEMS_MAX = 20;
const WORD_CHARS_MAX = 200;

const word = storableText.max(WORD_CHARS_MAX);
const words = z.array(word).max(LIST_ITEMS_MAX);
const name = storableText.max(CLIENT_NAME_CHARS_MAX).nullish().describe("The name to show, which the consent page calls unverified.");
const grantTypes = words
  .refine((types) => types.includes(CODE_GRANT), `must hold ${CODE_GRANT}`)
  .nullish()
  .describe("Must hold `authorization_code` when stated.");
const responseTypes = words
  .refine((types) => types.includes(CODE_RESPONSE), `must hold ${CODE_RESPONSE}`)
  .nullish()
  .describe("Must hold `code` when stated.");

const redirectUri = z.string().superRefine((text, issues) => {
  const url = readRedirectUrl(text);
  if (typeof url === "string") issues.addIssue(url);
});

/** RFC 7591 3.1. */
export const registerClientInput = z.looseObject({
  redirect_uris: z
    .array(redirectUri)
    .min(1)
    .max(CLIENT_REDIRECT_URLS_MAX)
    .refine(
      (urls) => urls.reduce((sum, url) => sum + url.length, 0) <= CLIENT_REDIRECT_URLS_CHARS_MAX,
      `must have at most ${CLIENT_REDIRECT_URLS_CHARS_MAX} characters together`,
    )
    .describe("Where the client may return to: https, or http on loopback, where any port matches."),
  client_name: name,
  grant_types: grantTypes,
  response_types: responseTypes,
  token_endpoint_auth_method: word.nullish().describe("Clients are public: the answer is always `none`."),
});
export type RegisterClientInput = z.output<typeof registerClientInput>;

/**
 * The document of a client id (draft-ietf-oauth-client-id-metadata-document). It may list redirect addresses for other servers, of kinds
 * that do not count here.
 */
const document = z
  .looseObject({
    client_id: z.string(),
    client_name: name,
    redirect_uris: z
      .array(z.string())
      .max(LIST_ITEMS_MAX)
      .transform((urls) => urls.filter((url) => typeof readRedirectUrl(url) !== "string"))
      .refine((urls) => urls.length > 0, "must hold an https address, or an http one on loopback"),
    grant_types: grantTypes,
    response_types: responseTypes,
    token_endpoint_auth_method: z.literal("none", "must be none: the client authenticates in no other way here").nullish(),
  })
  .transform(({ client_id, client_name, redirect_uris }) => ({ clientId: client_id, name: client_name, redirectUrls: redirect_uris }));

/** The client that a document at `url` describes; a string is the fault. */
export function readClientDocument(url: URL, clientId: string, content: unknown): UnverifiedClient | string {
  const { data, error } = document.safeParse(content);
  if (error) {
    const [issue] = error.issues;
    return `its ${issue?.path.map(String).join(".") || "content"} is wrong: ${issue?.message}`;
  }
  if (data.clientId !== clientId) return "its client_id is another address";
  return { id: clientId, name: toClientName(data.name), redirectUrls: [...new Set(data.redirectUrls)], documentHost: url.host };
}

/** Control characters, and characters that cannot be seen. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]+/gu;

/** Without characters that imitate another name. */
export function toClientName(stated: string | null | undefined): string | null {
  const shown = toShown(stated ?? "")
    .replace(UNSEEN, " ")
    .trim();
  return shown === "" ? null : shown;
}
