/**
 * Refuses texts that cannot be stored in the arguments of all fields, on each transport, as literals and as variables: BAD_REQUEST
 * with `param` naming the argument's field, as for the bodies of REST (docs/spec/http.md#bodies-and-query-values).
 */
import { type GraphQLFieldResolver, type GraphQLSchema, isObjectType } from "graphql";
import { wrongField } from "../errors.js";
import { findUnstorable } from "../lib/storable-text.js";

type Resolver = GraphQLFieldResolver<unknown, unknown, Record<string, unknown>>;

/** Wraps every field with arguments, so that they are checked first. */
export function refuseUnstorableArguments(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith("__")) continue;
    for (const field of Object.values(type.getFields())) {
      if (field.args.length === 0) continue;
      // A subscription resolves its events.
      if (field.subscribe) field.subscribe = checking(field.subscribe);
      else if (field.resolve) field.resolve = checking(field.resolve);
    }
  }
}

function checking(resolve: Resolver): Resolver {
  return (source, args, context, info) => {
    assertStorable(args);
    return resolve(source, args, context, info);
  };
}

/** Fields of an `input` are named without it, as the services name them. */
function assertStorable(args: Readonly<Record<string, unknown>>): void {
  const found = findUnstorable(args);
  if (found !== null) throw wrongField(found.path.replace(/^input\./, ""), found.problem);
}
