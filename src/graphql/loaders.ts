/** Reads that fields of many rows need are made together: one statement for what a tick has asked for. */
import { createContextCache } from "@pothos/core";
import DataLoader from "dataloader";
import type { GraphQLResolveInfo } from "graphql";
import type { GraphQLContext } from "./context.js";
import { byId } from "./nodes.js";
import { type Select, selectionOf } from "./selection.js";

/**
 * `batch` answers the values in the order of the keys; an Error in a value's place is that key's own. Nothing is remembered: a
 * subscription's context lives long, and what is read for one event must not be answered with the next.
 */
export function batchedBy<Key, Value>(
  batch: (ctx: GraphQLContext, keys: readonly Key[]) => Promise<readonly (Value | Error)[]>,
): (ctx: GraphQLContext, key: Key) => Promise<Value> {
  const loaders = createContextCache((ctx: GraphQLContext) => new DataLoader<Key, Value>((keys) => batch(ctx, keys), { cache: false }));
  return (ctx, key) => loaders(ctx).load(key);
}

/** `batchedBy` over a service's read that answers a map. What is not in it is null. */
export function batchedByMap<Value>(
  batch: (ctx: GraphQLContext, keys: readonly string[]) => Promise<ReadonlyMap<string, Value>>,
): (ctx: GraphQLContext, key: string) => Promise<Value | null> {
  return batchedBy<string, Value | null>(async (ctx, keys) => {
    const found = await batch(ctx, [...new Set(keys)]);
    return keys.map((key) => found.get(key) ?? null);
  });
}

/** Rows that other rows refer to, by their ids, with what the document selects of them. What is not there is null. */
export function rowsBatchedBy<Row extends { readonly id: string }>(
  read: (ctx: GraphQLContext, ids: readonly string[], select: Select) => Promise<readonly Row[]>,
): (ctx: GraphQLContext, id: string, info: GraphQLResolveInfo) => Promise<Row | null> {
  const load = batchedBy<{ readonly id: string; readonly info: GraphQLResolveInfo }, Row | null>(async (ctx, keys) => {
    const select: Select = Object.assign({}, ...keys.map(({ info }) => selectionOf(ctx, info)));
    const rows = byId(await read(ctx, [...new Set(keys.map(({ id }) => id))], select));
    return keys.map(({ id }) => rows.get(id) ?? null);
  });
  return (ctx, id, info) => load(ctx, { id, info });
}
