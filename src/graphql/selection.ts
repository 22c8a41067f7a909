/**
 * What a document selects of rows, as columns for the service that reads them. A resolver that answers rows asks for it, also when it
 * has the rows already: the fields of a row resolve only below a field that has asked.
 */
import { queryFromInfo } from "@pothos/plugin-prisma";
import type { GraphQLResolveInfo } from "graphql";
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
