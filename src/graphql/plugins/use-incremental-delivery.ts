/**
 * `@defer` and `@stream`: an answer in parts, to whoever says by name that it reads them (multipart/mixed, server-sent events), and on a
 * WebSocket. To all others, and where an answer is kept whole, the directives are the hints that they are by specification: everything
 * comes at once.
 */
import { useDeferStream } from "@graphql-yoga/plugin-defer-stream";
import {
  DirectiveLocation,
  type DirectiveNode,
  type DocumentNode,
  GraphQLBoolean,
  GraphQLDirective,
  GraphQLError,
  GraphQLInt,
  GraphQLNonNull,
  GraphQLString,
  type InlineFragmentNode,
  Kind,
  type SelectionNode,
  visit,
} from "graphql";
import type { Plugin } from "graphql-yoga";
import { GRAPHQL_PARTS_MAX } from "../../limits.js";
import type { GraphQLContext } from "../context.js";
import { toPublicError } from "../public-errors.js";
import { type CostedOperation, costOf } from "./use-cost.js";
import { IDEMPOTENCY_HEADER } from "./use-idempotency.js";
import { names } from "./use-request-rules.js";

const condition = (description: string) => ({ type: new GraphQLNonNull(GraphQLBoolean), defaultValue: true, description });
const label = { type: GraphQLString, description: "A name of its own within the document, told with each of the parts that it makes." };

/** As the executor reads them; in the schema, so that clients know of them. */
export const INCREMENTAL_DIRECTIVES: readonly GraphQLDirective[] = [
  new GraphQLDirective({
    name: "defer",
    description: "Answers the fragment in a later part of the answer. Clients that read no parts are answered at once and in whole.",
    locations: [DirectiveLocation.FRAGMENT_SPREAD, DirectiveLocation.INLINE_FRAGMENT],
    args: { if: condition("Whether to defer the fragment."), label },
  }),
  new GraphQLDirective({
    name: "stream",
    description:
      "Answers the list item by item in later parts of the answer. Clients that read no parts are answered at once and in whole.",
    locations: [DirectiveLocation.FIELD],
    args: {
      if: condition("Whether to stream the list."),
      label,
      initialCount: { type: GraphQLInt, defaultValue: 0, description: "How many items the first part of the answer has." },
    },
  }),
];

const INCREMENTAL: ReadonlySet<string> = new Set(INCREMENTAL_DIRECTIVES.map(({ name }) => name));

export function useIncrementalDelivery(): readonly Plugin<GraphQLContext, GraphQLContext>[] {
  const { onValidate } = useDeferStream();
  // The directives are in the schema: what is left of the library are its rules.
  return [{ ...(onValidate && { onValidate }) }, useParts()];
}

function useParts(): Plugin<GraphQLContext, GraphQLContext> {
  /** Documents are kept by Yoga, and looked through once each. */
  const wholes = new WeakMap<DocumentNode, DocumentNode>();
  const wholeOf = (document: DocumentNode): DocumentNode => {
    const whole = wholes.get(document) ?? withoutDirectives(document);
    wholes.set(document, whole);
    return whole;
  };
  return {
    onExecute: ({ args, executeFn, setExecuteFn, setResultAndStopExecution }) => {
      const whole = wholeOf(args.document);
      if (whole === args.document) return;
      if (!readsParts(args.contextValue)) return setExecuteFn((all) => executeFn({ ...all, document: whole }));
      const error = partsError(args, whole);
      if (error) setResultAndStopExecution({ errors: [error] });
    },
    // Its answers are parts already.
    onSubscribe: ({ args, subscribeFn, setSubscribeFn }) => {
      const whole = wholeOf(args.document);
      if (whole !== args.document) setSubscribeFn((all) => subscribeFn({ ...all, document: whole }));
    },
  };
}

/** On a WebSocket there is no request. An answer that is to be repeated is kept in one piece. */
function readsParts({ request }: GraphQLContext & { readonly request?: Request }): boolean {
  if (!request) return true;
  return !request.headers.has(IDEMPOTENCY_HEADER) && (names(request, "multipart/mixed") || names(request, "text/event-stream"));
}

/** The same document when it holds none of them. */
function withoutDirectives(document: DocumentNode): DocumentNode {
  return visit(document, { Directive: (directive) => (INCREMENTAL.has(directive.name.value) ? null : undefined) });
}

function partsError(args: CostedOperation, whole: DocumentNode): GraphQLError | null {
  const cost = costOf({ ...args, document: whole });
  const marked = costOf({ ...args, document: withMarks(args.document) });
  if (cost === null || marked === null || marked - cost <= GRAPHQL_PARTS_MAX) return null;
  const error = new GraphQLError(
    `The operation defers and streams up to ${marked - cost} parts, and at most ${GRAPHQL_PARTS_MAX} are allowed: do so outside of lists, or ask for smaller pages.`,
  );
  return toPublicError(error, args.contextValue);
}

const MARK: SelectionNode = { kind: Kind.FIELD, name: { kind: Kind.NAME, value: "__typename" } };
/** What a list without a page counts. */
const ITEMS_ASSUMED = 10;

/** A field more for each part, so that the cost rises by the number of parts, lists counted as they always are. */
function withMarks(document: DocumentNode): DocumentNode {
  // What is put in when a node is left is not visited again.
  return visit(document, {
    InlineFragment: {
      leave: (node) => (isIncremental(node.directives) ? { ...node, selectionSet: marked(node.selectionSet.selections, 1) } : undefined),
    },
    FragmentSpread: { leave: (node) => (isIncremental(node.directives) ? inline([node], 1) : undefined) },
    Field: {
      leave: (node) => {
        if (!isIncremental(node.directives)) return undefined;
        if (!node.selectionSet) return inline([node], ITEMS_ASSUMED);
        return { ...node, selectionSet: marked(node.selectionSet.selections, 1) };
      },
    },
  });
}

function isIncremental(directives: readonly DirectiveNode[] = []): boolean {
  return directives.some(({ name }) => INCREMENTAL.has(name.value));
}

function inline(selections: readonly SelectionNode[], marks: number): InlineFragmentNode {
  return { kind: Kind.INLINE_FRAGMENT, selectionSet: marked(selections, marks) };
}

function marked(selections: readonly SelectionNode[], marks: number): InlineFragmentNode["selectionSet"] {
  return { kind: Kind.SELECTION_SET, selections: [...selections, ...Array.from({ length: marks }, () => MARK)] };
}
