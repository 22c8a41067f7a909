/**
 * `Node`: objects with a global ID, which `node` loads again. An object type joins by naming the interface, and states in its
 * extensions how its objects are read, with the same permissions as elsewhere.
 */
import { brandWithType } from "@pothos/core";
import type { GraphQLResolveInfo, GraphQLSchema } from "graphql";
import { wrongField } from "../errors.js";
import { builder } from "./builder.js";
import type { GraphQLContext } from "./context.js";
import { parseGlobalId, toGlobalId } from "./global-ids.js";

const NODES_MAX = 100;

/** Returns the objects with these REST IDs that exist and that the caller may see, by ID. */
export type ReadNodes = (
  ctx: GraphQLContext,
  ids: readonly string[],
  info: GraphQLResolveInfo,
) => Promise<ReadonlyMap<string, object>> | ReadonlyMap<string, object>;

/** The extensions of an object type that is a Node. */
export function nodesReadBy(readNodes: ReadNodes): { readonly readNodes: ReadNodes } {
  return { readNodes };
}

/** Returns rows by ID, as `ReadNodes` does. */
export function byId<Row extends { readonly id: string }>(rows: readonly Row[]): ReadonlyMap<string, Row> {
  return new Map(rows.map((row) => [row.id, row]));
}

export const Node = builder.interfaceRef<{ readonly id: string }>("Node").implement({
  description: "An object with a globally unique ID, which `node` and `nodes` load.",
  fields: (t) => ({
    id: t.id({
      description: "The globally unique, opaque ID, for client caches.",
      resolve: ({ id }, _args, _ctx, info) => toGlobalId(info.parentType.name, id),
    }),
    restId: t.exposeID("id", { description: "The ID in REST, headers and webhooks. Arguments accept either ID." }),
  }),
});

builder.queryField("node", (t) =>
  t.field({
    type: Node,
    nullable: true,
    description:
      "Loads an object by its ID. Null when it does not exist, or the caller may not read it. Needs the same permission as other fields that return the object.",
    args: { id: t.arg.id({ required: true, description: "The value of an `id` field." }) },
    resolve: async (_root, { id }, ctx, info) => (await readAll(ctx, [id], info, () => "id"))[0] ?? null,
  }),
);

builder.queryField("nodes", (t) =>
  t.field({
    type: [Node],
    nullable: { list: true, items: true },
    description: `Loads objects by their IDs, in the same order, at most ${NODES_MAX}. Null for each object that does not exist, or that the caller may not read.`,
    args: { ids: t.arg.idList({ required: true, description: "The values of `id` fields." }) },
    complexity: ({ ids }) => ({ field: 1, multiplier: Math.max(1, ids.length) }),
    resolve: (_root, { ids }, ctx, info) => {
      if (ids.length > NODES_MAX) throw wrongField("ids", `must be at most ${NODES_MAX} ids`);
      return readAll(ctx, ids, info, (index) => `ids.${index}`);
    },
  }),
);

/** Objects of one type are read together. */
async function readAll(
  ctx: GraphQLContext,
  texts: readonly string[],
  info: GraphQLResolveInfo,
  paramOf: (index: number) => string,
): Promise<({ readonly id: string } | null)[]> {
  const ids = texts.map((text, index) => {
    const globalId = parseGlobalId(text);
    if (globalId !== null && readerOf(info.schema, globalId.typeName)) return globalId;
    throw wrongField(paramOf(index), "must be what a field `id` has answered");
  });
  const typeNames = [...new Set(ids.map(({ typeName }) => typeName))];
  const found = new Map(
    await Promise.all(
      typeNames.map(async (typeName) => {
        const wanted = new Set(ids.flatMap((id) => (id.typeName === typeName ? [id.id] : [])));
        return [typeName, (await readerOf(info.schema, typeName)?.(ctx, [...wanted], info)) ?? new Map<string, object>()] as const;
      }),
    ),
  );
  return ids.map(({ typeName, id }) => {
    const shown = found.get(typeName)?.get(id);
    if (!shown) return null;
    // Catalog models are frozen and shared by all callers.
    const thing = Object.isExtensible(shown) ? shown : { ...shown };
    brandWithType(thing, typeName as never);
    return thing as { readonly id: string };
  });
}

function readerOf(schema: GraphQLSchema, typeName: string): ReadNodes | undefined {
  return schema.getType(typeName)?.extensions.readNodes as ReadNodes | undefined;
}
