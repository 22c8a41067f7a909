/**
 * Limits of documents, on every transport (docs/spec/graphql.md#limits). The size is limited during parsing, then depth, aliases,
 * directives and fields, then validation rules run; the cost is counted when the variables are known.
 */
import { NoSchemaIntrospectionCustomRule } from "graphql";
import type { Plugin } from "graphql-yoga";
import type { GraphQLContext } from "../context.js";
import { parseDocument } from "../documents/parse.js";
import { validateDocument } from "../documents/validate.js";

/** Yoga caches parsed documents by their text, and their validity by the names of the added rules. */
export function useDocumentLimits(): Plugin<GraphQLContext, GraphQLContext> {
  return {
    onParse: ({ setParseFn }) => setParseFn(parseDocument),
    onValidate: ({ addValidationRule, setValidationFn, context }) => {
      const more = context.isSchemaOpen ? [] : [NoSchemaIntrospectionCustomRule];
      for (const rule of more) addValidationRule(rule);
      setValidationFn((schema, document) => validateDocument(schema, document, more));
    },
  };
}
