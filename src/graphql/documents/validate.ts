/**
 * Validation in three steps, each bounded by the one before it: the document's size, rules with linear work, and the merging of its
 * fields.
 */
import {
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  OverlappingFieldsCanBeMergedRule,
  specifiedRules,
  TypeInfo,
  ValidationContext,
  type ValidationRule,
  visit,
  visitInParallel,
  visitWithTypeInfo,
} from "graphql";
import { GRAPHQL_ERRORS_MAX, GRAPHQL_SUGGESTIONS_MAX } from "../limits.js";
import { mergingErrors } from "./merging.js";
import { IncrementalLabelRule, IncrementalRootRule, OnePerOperationRule, StreamedListRule } from "./rules.js";
import { structureError } from "./structure.js";

const RULES: readonly ValidationRule[] = [
  ...specifiedRules.filter((rule) => rule !== OverlappingFieldsCanBeMergedRule),
  IncrementalLabelRule,
  IncrementalRootRule,
  StreamedListRule,
  OnePerOperationRule,
];

/** `more`: rules for one caller, such as that against introspection. */
export function validateDocument(schema: GraphQLSchema, document: DocumentNode, more: readonly ValidationRule[]): readonly GraphQLError[] {
  const tooLarge = structureError(document);
  if (tooLarge) return [tooLarge];
  const errors = findErrors(schema, document, [...RULES, ...more]);
  return errors.length > 0 ? errors : mergingErrors(schema, document);
}

/** Thrown through graphql-js's visitor, which has no other way to stop. */
const ENOUGH = Symbol("enough errors");

function findErrors(schema: GraphQLSchema, document: DocumentNode, rules: readonly ValidationRule[]): readonly GraphQLError[] {
  const errors: GraphQLError[] = [];
  const typeInfo = new TypeInfo(schema);
  const context = new BoundedContext(schema, document, typeInfo, errors);
  try {
    visit(document, visitWithTypeInfo(typeInfo, visitInParallel(rules.map((rule) => rule(context)))));
  } catch (error) {
    if (error !== ENOUGH) throw error;
  }
  return errors;
}

class BoundedContext extends ValidationContext {
  constructor(
    schema: GraphQLSchema,
    document: DocumentNode,
    typeInfo: TypeInfo,
    private readonly errors: GraphQLError[],
  ) {
    super(schema, document, typeInfo, (error) => {
      errors.push(error);
      if (errors.length === GRAPHQL_ERRORS_MAX) throw ENOUGH;
    });
  }

  /** A misspelt name is compared with every name of the schema, so only the first ones are. */
  override get hideSuggestions(): boolean {
    return this.errors.length >= GRAPHQL_SUGGESTIONS_MAX;
  }
}
