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

interface Reference {
  readonly id: string;
  readonly info: GraphQLResolveInfo;
}

/** Rows that other things refer to, by their ids: one read for all of which a document selects alike. What is not there is null. */
export function rowsBatchedBy<Row extends { readonly id: string }>(
  read: (ctx: GraphQLContext, ids: readonly string[], select: Select) => Promise<readonly Row[]>,
): (ctx: GraphQLContext, id: string, info: GraphQLResolveInfo) => Promise<Row | null> {
  const load = batchedBy<Reference, Row | null>(async (ctx, references) => {
    const reads = new Map<string, { readonly select: Select; readonly ids: Set<string> }>();
    const texts = references.map(({ id, info }) => {
      const select = selectionOf(ctx, info);
      const text = JSON.stringify(select);
      const { ids } = reads.get(text) ?? setAndGet(reads, text, { select, ids: new Set<string>() });
      ids.add(id);
      return text;
    });
    const found = new Map(
      await Promise.all([...reads].map(async ([text, { select, ids }]) => [text, byId(await read(ctx, [...ids], select))] as const)),
    );
    return references.map(({ id }, place) => found.get(texts[place] ?? "")?.get(id) ?? null);
  });
  return (ctx, id, info) => load(ctx, { id, info });
}

function setAndGet<Value>(map: Map<string, Value>, key: string, value: Value): Value {
  map.set(key, value);
  return value;
}
