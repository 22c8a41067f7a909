/**
 * The selection of a document as columns, for the service that reads the rows. A resolver that returns rows must compute it, even
 * when it already has the rows: fields of a row resolve only below a field with a selection.
 */
import { queryFromInfo } from "@pothos/plugin-prisma";
import { type GraphQLResolveInfo, Kind, type SelectionSetNode } from "graphql";
import { ownValue } from "../lib/own-values.js";
import type { GraphQLContext } from "./context.js";

export type Select = Readonly<Record<string, unknown>>;

/** Deferred fields are read with the rest, so that a service reads a row once. */
const WHOLE = { skipDeferredFragments: false } as const;

const CONNECTION_PATHS = [["nodes"], ["edges", "node"]];

/** `path`: the place of the row below the field, such as `["apiKey"]` in a payload. */
export function selectionOf(ctx: GraphQLContext, info: GraphQLResolveInfo, path: readonly string[] = [], typeName?: string): Select {
  return columnsOf(queryFromInfo({ ...WHOLE, context: ctx, info, path: [...path], ...(typeName !== undefined && { typeName }) }));
}

export function connectionSelectionOf(ctx: GraphQLContext, info: GraphQLResolveInfo): Select {
  return columnsOf(queryFromInfo({ ...WHOLE, context: ctx, info, paths: CONNECTION_PATHS }));
}

function columnsOf({ select }: { readonly select?: Select | undefined }): Select {
  return select ?? {};
}

/**
 * The names of the fields selected below the field, regardless of directives and types. For values that are not rows and expensive to
 * read.
 */
export function fieldsOf({ fieldNodes, fragments }: GraphQLResolveInfo): ReadonlySet<string> {
  const names = new Set<string>();
  const entered = new Set<string>();
  const enter = (selectionSet: SelectionSetNode | undefined) => {
    for (const selection of selectionSet?.selections ?? []) {
      if (selection.kind === Kind.FIELD) names.add(selection.name.value);
      else if (selection.kind === Kind.INLINE_FRAGMENT) enter(selection.selectionSet);
      else if (!entered.has(selection.name.value)) {
        entered.add(selection.name.value);
        enter(ownValue(fragments, selection.name.value)?.selectionSet);
      }
    }
  };
  for (const { selectionSet } of fieldNodes) enter(selectionSet);
  return names;
}
