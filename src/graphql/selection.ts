/**
 * What a document selects of rows, as columns for the service that reads them. A resolver that answers rows asks for it, also when it
 * has the rows already: the fields of a row resolve only below a field that has asked.
 */
import { queryFromInfo } from "@pothos/plugin-prisma";
import { type GraphQLResolveInfo, Kind, type SelectionSetNode } from "graphql";
import { ownValue } from "../lib/own-values.js";
import type { GraphQLContext } from "./context.js";

export type Select = Readonly<Record<string, unknown>>;

/** What is deferred is read with the rest: a row is read once, by a service. */
const WHOLE = { skipDeferredFragments: false } as const;

/** Where the rows of a connection are. */
const CONNECTION_PATHS = [["nodes"], ["edges", "node"]];

/** `path`: where below the field the row is, such as `["apiKey"]` in a payload. */
export function selectionOf(ctx: GraphQLContext, info: GraphQLResolveInfo, path: readonly string[] = [], typeName?: string): Select {
  return columnsOf(queryFromInfo({ ...WHOLE, context: ctx, info, path: [...path], ...(typeName !== undefined && { typeName }) }));
}

export function connectionSelectionOf(ctx: GraphQLContext, info: GraphQLResolveInfo): Select {
  return columnsOf(queryFromInfo({ ...WHOLE, context: ctx, info, paths: CONNECTION_PATHS }));
}

function columnsOf({ select }: { readonly select?: Select | undefined }): Select {
  return select ?? {};
}

/** The names of the fields that are selected below the field, whatever directives and types say: of what is no row, and dear to read. */
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
