/**
 * Documents requested by their SHA-256 in `extensions.persistedQuery`, as in Apollo's automatic persisted queries: first the digest
 * alone, and if it is unknown, the digest with the text, which is stored once it is valid. The service decides which documents are
 * stored and allowed (services/requests/persisted-documents.ts).
 */
import { GraphQLError } from "graphql";
import type { Plugin } from "graphql-yoga";
import { invalidInput } from "../../errors.js";
import { statusOf } from "../../http/errors.js";
import { ownValue } from "../../lib/own-values.js";
import { DIGEST_PATTERN, digestOf } from "../../services/requests/persisted-documents.js";
import type { GraphQLContext } from "../context.js";
import { PERSISTED_QUERY_NOT_FOUND, PERSISTED_QUERY_NOT_IN_LIST } from "../public-errors.js";

const PARAM = "extensions.persistedQuery";

interface DocumentParams {
  readonly query?: unknown;
  readonly extensions?: unknown;
}

/** Texts to register when their operation starts, which only valid ones do. */
const registering = new WeakMap<GraphQLContext, { readonly digest: string; readonly text: string }>();

export function usePersistedDocuments(): Plugin<GraphQLContext, GraphQLContext> {
  const register = ({ args: { contextValue: ctx } }: { readonly args: { readonly contextValue: GraphQLContext } }) => {
    const document = registering.get(ctx);
    // Not awaited. It never rejects.
    if (document) void ctx.services.persistedDocuments.register(ctx, document.digest, document.text);
  };
  return {
    onParams: async ({ params, context, setParams }) => {
      const query = await textOf(params, context as GraphQLContext);
      if (query !== params.query) setParams({ ...params, query });
    },
    onExecute: register,
    onSubscribe: register,
  };
}

/**
 * Returns the text of the requested document. Values that are not text are left for others to refuse. Throws when the document is
 * unknown, or not allowed.
 */
export async function textOf<Query>(params: DocumentParams & { readonly query?: Query }, ctx: GraphQLContext): Promise<Query | string> {
  const documents = ctx.services.persistedDocuments;
  const digest = digestIn(params.extensions);
  const { query } = params;
  const text = typeof query === "string" && query !== "" ? query : null;
  if (digest === null) {
    if (documents.isOnly && text !== null && !documents.isTrusted(digestOf(text))) throw notInList();
    return query as Query;
  }
  if (text === null) {
    const known = await documents.find(digest);
    if (known !== null) return known;
    throw documents.isOnly ? notInList() : notFound();
  }
  if (digestOf(text) !== digest) throw invalidInput("This is not the SHA-256 of the document that came with it.", `${PARAM}.sha256Hash`);
  if (documents.isOnly && !documents.isTrusted(digest)) throw notInList();
  registering.set(ctx, { digest, text });
  return text;
}

function digestIn(extensions: unknown): string | null {
  const entry = member(extensions, "persistedQuery") ?? null;
  if (entry === null) return null;
  if (typeof entry !== "object" || Array.isArray(entry)) throw invalidInput("Expected an object with version and sha256Hash.", PARAM);
  if (member(entry, "version") !== 1) throw invalidInput("The version must be 1.", `${PARAM}.version`);
  const digest = member(entry, "sha256Hash");
  if (typeof digest === "string" && DIGEST_PATTERN.test(digest)) return digest;
  throw invalidInput("Expected the document's SHA-256 as 64 hexadecimal digits in lower case.", `${PARAM}.sha256Hash`);
}

function member(holder: unknown, name: string): unknown {
  return typeof holder === "object" && holder !== null ? ownValue(holder as Readonly<Record<string, unknown>>, name) : undefined;
}

/** Message, code and status are those of the protocol: clients then send the text. */
function notFound(): GraphQLError {
  return new GraphQLError("PersistedQueryNotFound", { extensions: { code: PERSISTED_QUERY_NOT_FOUND, http: { status: 200 } } });
}

function notInList(): GraphQLError {
  return new GraphQLError(
    "This gateway answers none but the documents of its own list: send the SHA-256 of one of them as extensions.persistedQuery.sha256Hash.",
    { extensions: { code: PERSISTED_QUERY_NOT_IN_LIST, http: { status: statusOf("FORBIDDEN") } } },
  );
}
