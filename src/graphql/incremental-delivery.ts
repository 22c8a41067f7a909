/**
 * `@defer` and `@stream`: an answer in parts, for callers whose `Accept` names a type with parts (multipart/mixed, server-sent
 * events), and on a WebSocket. All other answers, and answers stored for an Idempotency-Key, are whole.
 */
import {
  DirectiveLocation,
  type DocumentNode,
  GraphQLBoolean,
  GraphQLDirective,
  GraphQLInt,
  GraphQLNonNull,
  GraphQLString,
  visit,
} from "graphql";
import type { GraphQLContext } from "./context.js";
import { IDEMPOTENCY_HEADER } from "./plugins/use-idempotency.js";
import { names, namesParts } from "./plugins/use-request-rules.js";

const condition = (description: string) => ({ type: new GraphQLNonNull(GraphQLBoolean), defaultValue: true, description });
const label = { type: GraphQLString, description: "A name that is unique in the document. Every part of the answer repeats it." };

/** The directives as the executor reads them. They are in the schema for clients. */
export const INCREMENTAL_DIRECTIVES: readonly GraphQLDirective[] = [
  new GraphQLDirective({
    name: "defer",
    description: "Delivers the fragment in a later part of the answer. Clients that do not read parts receive the complete answer at once.",
    locations: [DirectiveLocation.FRAGMENT_SPREAD, DirectiveLocation.INLINE_FRAGMENT],
    args: { if: condition("Whether to defer the fragment."), label },
  }),
  new GraphQLDirective({
    name: "stream",
    description:
      "Delivers the list item by item in later parts of the answer. Clients that do not read parts receive the complete answer at once.",
    locations: [DirectiveLocation.FIELD],
    args: {
      if: condition("Whether to stream the list."),
      label,
      initialCount: { type: GraphQLInt, defaultValue: 0, description: "The number of items in the first part of the answer." },
    },
  }),
];

const INCREMENTAL: ReadonlySet<string> = new Set(INCREMENTAL_DIRECTIVES.map(({ name }) => name));

/** On a WebSocket there is no request. An answer that may be replayed is stored whole. */
export function readsParts({ request }: GraphQLContext & { readonly request?: Request }): boolean {
  if (!request) return true;
  return !request.headers.has(IDEMPOTENCY_HEADER) && (namesParts(request) || names(request, "text/event-stream"));
}

/** Yoga caches documents, so each is searched once. */
const WHOLES = new WeakMap<DocumentNode, DocumentNode>();

/** Returns the document without these directives, or the same one when it has none. */
export function withoutDirectives(document: DocumentNode): DocumentNode {
  const known = WHOLES.get(document);
  if (known) return known;
  const whole = visit(document, { Directive: (directive) => (INCREMENTAL.has(directive.name.value) ? null : undefined) });
  WHOLES.set(document, whole);
  return whole;
}
