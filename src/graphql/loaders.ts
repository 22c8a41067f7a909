/** Batches reads that fields of many rows need: one statement per tick. */
import { createContextCache } from "@pothos/core";
import DataLoader from "dataloader";
import type { GraphQLResolveInfo } from "graphql";
import type { GraphQLContext } from "./context.js";
import { byId } from "./nodes.js";
import { type Select, selectionOf } from "./selection.js";

/**
 * Batches calls per tick. `batch` returns the values in the order of the keys; an Error as a value fails only that key. Nothing is
 * cached: a subscription's context lives long, and each event must be answered with fresh data.
 */
export function batchedBy<Key, Value>(
  batch: (ctx: GraphQLContext, keys: readonly Key[]) => Promise<readonly (Value | Error)[]>,
): (ctx: GraphQLContext, key: Key) => Promise<Value> {
  const loaders = createContextCache((ctx: GraphQLContext) => new DataLoader<Key, Value>((keys) => batch(ctx, keys), { cache: false }));
  return (ctx, key) => loaders(ctx).load(key);
}

/** `batchedBy` for a service's read that returns a map. Missing keys are null. */
export function batchedByMap<Value>(
  batch: (ctx: GraphQLContext, keys: readonly string[]) => Promise<ReadonlyMap<string, Value>>,
): (ctx: GraphQLContext, key: string) => Promise<Value | null> {
  return batchedBy<string, Value | null>(async (ctx, keys) => {
    const found = await batch(ctx, [...new Set(keys)]);
    return keys.map((key) => found.get(key) ?? null);
  });
}

interface BatchedRead<Args> {
  readonly id: string;
  readonly args: Args;
  readonly select: Select;
}

/**
 * Batches a list or value that each of several objects has: one read for all with the same arguments and selection. Missing keys are
 * null; an Error fails only its key.
 */
export function edgesBatchedBy<Args, Value>(
  read: (ctx: GraphQLContext, ids: readonly string[], args: Args, select: Select) => Promise<ReadonlyMap<string, Value | Error>>,
): (ctx: GraphQLContext, id: string, args: Args, select: Select) => Promise<Value | null> {
  const load = batchedBy<BatchedRead<Args>, Value | null>(async (ctx, reads) => {
    const alike = new Map<string, { readonly first: BatchedRead<Args>; readonly ids: Set<string> }>();
    const texts = reads.map((each) => {
      const text = JSON.stringify([each.args, each.select], (_, value) => (typeof value === "bigint" ? `${value}` : value));
      const { ids } = alike.get(text) ?? setAndGet(alike, text, { first: each, ids: new Set<string>() });
      ids.add(each.id);
      return text;
    });
    const found = new Map<string, ReadonlyMap<string, Value | Error> | Error>();
    await Promise.all(
      [...alike].map(
        async ([
          text,
          {
            first: { args, select },
            ids,
          },
        ]) => {
          try {
            found.set(text, await read(ctx, [...ids], args, select));
          } catch (error) {
            found.set(text, error as Error);
          }
        },
      ),
    );
    return reads.map(({ id }, place) => {
      const values = found.get(texts[place] ?? "");
      return values instanceof Error ? values : (values?.get(id) ?? null);
    });
  });
  return (ctx, id, args, select) => load(ctx, { id, args, select });
}

/** Batches rows that other objects refer to, by ID: one read for all with the same selection. Missing rows are null. */
export function rowsBatchedBy<Row extends { readonly id: string }>(
  read: (ctx: GraphQLContext, ids: readonly string[], select: Select) => Promise<readonly Row[]>,
): (ctx: GraphQLContext, id: string, info: GraphQLResolveInfo) => Promise<Row | null> {
  const load = edgesBatchedBy<null, Row>(async (ctx, ids, _args, select) => byId(await read(ctx, ids, select)));
  return (ctx, id, info) => load(ctx, id, null, selectionOf(ctx, info));
}

function setAndGet<Value>(map: Map<string, Value>, key: string, value: Value): Value {
  map.set(key, value);
  return value;
}
