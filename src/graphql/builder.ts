/**
 * The schema builder: scalars, defaults and plugins for every file in types/.
 * Fields are non-null unless they state otherwise. Fields of the root types and fields with a permission of their own are nullable,
 * so that a refusal does not affect the rest of the answer: the receipt of a paid generation must not vanish because another field of
 * the same document failed.
 */
import SchemaBuilder from "@pothos/core";
import ComplexityPlugin from "@pothos/plugin-complexity";
import PrismaPlugin from "@pothos/plugin-prisma";
import RelayPlugin from "@pothos/plugin-relay";
import type { UploadedFile } from "../http/uploads.js";
import type { GraphQLContext } from "./context.js";
import type PrismaTypes from "./generated/rows.js";
import { getDatamodel } from "./generated/rows.js";
import {
  parseCredits,
  parseDateTime,
  parseFile,
  parseJson,
  parsePrice,
  serializeCredits,
  serializeDateTime,
  serializeFile,
} from "./scalars.js";

export interface SchemaTypes {
  Context: GraphQLContext;
  DefaultFieldNullability: false;
  DefaultEdgesNullability: false;
  DefaultNodeNullability: false;
  PrismaTypes: PrismaTypes;
  /** Fields of every connection besides its edges. */
  Connection: { readonly count: () => Promise<number> };
  Scalars: {
    ID: { Input: string; Output: string };
    DateTime: { Input: Date; Output: Date };
    /** Takes nanocredits and prints decimal strings. Only the resolver knows whether it has nanocredits or picocredits. */
    Credits: { Input: bigint; Output: string };
    /** Takes picocredits and prints decimal strings. */
    Price: { Input: bigint; Output: string };
    JSON: { Input: unknown; Output: unknown };
    File: { Input: UploadedFile; Output: never };
  };
}

export const builder = new SchemaBuilder<SchemaTypes>({
  plugins: [PrismaPlugin, RelayPlugin, ComplexityPlugin],
  defaultFieldNullability: false,
  prisma: {
    dmmf: getDatamodel(),
    // Services read rows with the selection of a resolver. A read outside of a service is a defect.
    client: () => {
      throw new Error("A field of a row was not selected: its resolver has not asked for the selection.");
    },
    onUnusedQuery: "error",
  },
  relay: {
    cursorType: "String",
    // The page size is counted once, in pages.ts.
    edgesFieldOptions: {
      nullable: false,
      complexity: { field: 1, multiplier: 1 },
      description: "The items of the page with their cursors.",
    },
    nodeFieldOptions: { nullable: false, description: "The item." },
    cursorFieldOptions: { description: "The cursor of the item, for `after` and `before`." },
    pageInfoFieldOptions: { description: "Information about the page." },
    pageInfoTypeOptions: { description: "Information about a page of a list." },
    hasNextPageFieldOptions: { description: "Whether more items follow after the page." },
    hasPreviousPageFieldOptions: { description: "Whether there are items before the page." },
    startCursorFieldOptions: { description: "The cursor of the first item. Null when the page is empty." },
    endCursorFieldOptions: { description: "The cursor of the last item. Null when the page is empty." },
    nodesOnConnection: { complexity: { field: 1, multiplier: 1 }, description: "The items of the page, without cursors." },
    nodeQueryOptions: false,
    nodesQueryOptions: false,
  },
  // Fields state their costs here. cost.ts checks them once per operation, before it starts.
  complexity: { disabled: true },
});

builder.scalarType("DateTime", {
  description: "A time in UTC as ISO 8601 text: `2026-11-21T09:30:00.000Z`.",
  serialize: serializeDateTime,
  parseValue: parseDateTime,
});

builder.scalarType("Credits", {
  description: 'An amount of credits as a decimal string: `"0.00012"`. One credit is worth one US dollar.',
  serialize: serializeCredits,
  parseValue: parseCredits,
});

builder.scalarType("Price", {
  description: 'Credits per unit as a decimal string with at most 12 decimal places, such as `"0.00000015"` per token.',
  serialize: serializeCredits,
  parseValue: parsePrice,
});

builder.scalarType("JSON", {
  description: "Any JSON value, for data whose structure upstreams define.",
  serialize: (value) => value,
  parseValue: parseJson,
});

builder.scalarType("File", {
  description:
    "A file, uploaded according to the GraphQL multipart request specification: a form with `operations`, `map` and the file, and one of the headers that the CSRF prevention requires, such as `GraphQL-Preflight: 1`.",
  serialize: serializeFile,
  parseValue: parseFile,
  parseLiteral: () => parseFile(null),
});

builder.queryType({ description: "All queries." });
builder.mutationType({ description: "All mutations." });
builder.subscriptionType({ description: "All subscriptions." });

/** Converts `{ ok: "It went well." }` to the values of a GraphQL enum with their descriptions. */
export function describedValues<Value extends string>(
  descriptions: Readonly<Record<Value, string>>,
): Record<string, { readonly value: Value; readonly description: string }> {
  const entries = Object.entries<string>(descriptions) as [Value, string][];
  return Object.fromEntries(entries.map(([value, description]) => [value.toUpperCase(), { value, description }]));
}
