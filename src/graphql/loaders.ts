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

interface Asked<Args> {
  readonly id: string;
  readonly args: Args;
  readonly select: Select;
}

/**
 * What each of several things has, such as a list of its own: one read for all that a document asks for alike, by its arguments and by
 * what it selects. What is not there is null; an Error is that thing's own.
 */
export function edgesBatchedBy<Args, Value>(
  read: (ctx: GraphQLContext, ids: readonly string[], args: Args, select: Select) => Promise<ReadonlyMap<string, Value | Error>>,
): (ctx: GraphQLContext, id: string, args: Args, select: Select) => Promise<Value | null> {
  const load = batchedBy<Asked<Args>, Value | null>(async (ctx, asked) => {
    const alike = new Map<string, { readonly asked: Asked<Args>; readonly ids: Set<string> }>();
    const texts = asked.map((each) => {
      const text = JSON.stringify([each.args, each.select], (_, value) => (typeof value === "bigint" ? `${value}` : value));
      const { ids } = alike.get(text) ?? setAndGet(alike, text, { asked: each, ids: new Set<string>() });
      ids.add(each.id);
      return text;
    });
    const found = new Map<string, ReadonlyMap<string, Value | Error> | Error>();
    await Promise.all(
      [...alike].map(
        async ([
          text,
          {
            asked: { args, select },
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
    return asked.map(({ id }, place) => {
      const values = found.get(texts[place] ?? "");
      return values instanceof Error ? values : (values?.get(id) ?? null);
    });
  });
  return (ctx, id, args, select) => load(ctx, { id, args, select });
}

/** Rows that other things refer to, by their ids: one read for all of which a document selects alike. What is not there is null. */
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
