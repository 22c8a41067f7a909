/**
 * What a document may ask for, on every transport (docs/spec/graphql.md#limits). Its size is bounded while it is parsed, then depth, aliases,
 * directives and fields, then come the rules; its cost is counted when the variables are known.
 */
import { NoSchemaIntrospectionCustomRule } from "graphql";
import type { Plugin } from "graphql-yoga";
import type { GraphQLContext } from "../context.js";
import { parseDocument } from "../documents/parse.js";
import { validateDocument } from "../documents/validate.js";

/** Yoga keeps parsed documents by their text, and whether they are valid by the names of the rules that were added. */
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
