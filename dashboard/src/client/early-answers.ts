/**
 * Answers of queries that are sent before the code of the GraphQL client has loaded. The client takes each once, for the same query with the
 * same variables, instead of sending it again.
 */
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";

/** Session cookies are valid at the origin of the page only. */
export const PATH = "/graphql";

/** Protects uploads from CSRF: a page of another site can send a multipart form, but not this header. */
export const HEADERS = { "graphql-preflight": "1" };

/** By digest and variables. */
const answers = new Map<string, Promise<Response>>();

export const byDigest = (digest: string) => ({ persistedQuery: { version: 1 as const, sha256Hash: digest } });

/** Does nothing for a document without a digest. */
export function sendEarly<Data, Variables extends object>(document: TypedDocumentNode<Data, Variables>, variables: Variables): void {
  if (!("documentId" in document) || typeof document.documentId !== "string") return;
  const answer = fetch(PATH, {
    method: "POST",
    headers: { ...HEADERS, "content-type": "application/json", accept: "application/graphql-response+json, application/json" },
    body: JSON.stringify({ variables, extensions: byDigest(document.documentId) }),
  });
  // Reported to the one who takes the answer.
  answer.catch(() => {});
  answers.set(nameOf(document.documentId, variables), answer);
}

/** `fetch` for the GraphQL client. */
export const fetchOnce: typeof fetch = (address, init) => {
  const taken = answers.size > 0 && typeof init?.body === "string" ? take(init.body) : undefined;
  return taken ?? fetch(address, init);
};

function take(body: string): Promise<Response> | undefined {
  const { variables, extensions } = JSON.parse(body);
  const name = nameOf(extensions?.persistedQuery?.sha256Hash, variables ?? {});
  const answer = answers.get(name);
  answers.delete(name);
  return answer;
}

/** The client sorts the variables. */
const nameOf = (digest: string, variables: object) => digest + JSON.stringify(Object.entries(variables).sort());
