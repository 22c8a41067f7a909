/**
 * What a document may ask for, on every transport (docs/spec/graphql.md#limits): depth, aliases, directives and tokens by GraphQL
 * Armor; cost with the page sizes that were really asked for, variables included; one account-changing field per operation.
 */
import { EnvelopArmor } from "@escape.tech/graphql-armor";
import {
  type ASTVisitor,
  GraphQLError,
  type GraphQLObjectType,
  Kind,
  NoSchemaIntrospectionCustomRule,
  type SelectionSetNode,
  type ValidationContext,
} from "graphql";
import type { Plugin, YogaInitialContext } from "graphql-yoga";
import { ownValue } from "../../lib/own-values.js";
import { GRAPHQL_ALIASES_MAX, GRAPHQL_DEPTH_MAX, GRAPHQL_DIRECTIVES_MAX, GRAPHQL_TOKENS_MAX } from "../../limits.js";
import type { GraphQLContext } from "../context.js";
import { useCost } from "./use-cost.js";

export function documentLimits(): Plugin<GraphQLContext>[] {
  const armor = new EnvelopArmor<YogaInitialContext & GraphQLContext>({
    maxDepth: { n: GRAPHQL_DEPTH_MAX },
    maxAliases: { n: GRAPHQL_ALIASES_MAX },
    maxDirectives: { n: GRAPHQL_DIRECTIVES_MAX },
    maxTokens: { n: GRAPHQL_TOKENS_MAX },
    // It cannot see page sizes that come as variables or defaults; useCost can.
    costLimit: { enabled: false },
    // Suggestions also come from variables, which are no matter of validation; toPublicError drops them where the schema is closed.
    blockFieldSuggestion: { enabled: false },
  });
  return [...armor.protect().plugins, useValidationRules(), useCost()];
}

function useValidationRules(): Plugin<GraphQLContext> {
  return {
    onValidate: ({ addValidationRule, context }) => {
      addValidationRule(OnePerOperationRule);
      if (!context.isSchemaOpen) addValidationRule(NoSchemaIntrospectionCustomRule);
    },
  };
}

/** Fields marked `isOnePerOperation` may appear once among the root fields: repeating them by alias would dodge rate limits. */
function OnePerOperationRule(context: ValidationContext): ASTVisitor {
  return {
    OperationDefinition: (operation) => {
      const root = context.getSchema().getRootType(operation.operation);
      if (!root) return;
      const names = rootFieldNames(context, operation.selectionSet, new Set());
      const guarded = names.filter((name) => isOnePerOperation(root, name));
      if (guarded.length > 1) {
        context.reportError(
          new GraphQLError(`An operation may hold only one of ${[...new Set(guarded)].join(", ")}.`, { nodes: operation }),
        );
      }
    },
  };
}

function isOnePerOperation(root: GraphQLObjectType, fieldName: string): boolean {
  return ownValue(root.getFields(), fieldName)?.extensions.isOnePerOperation === true;
}

/** Inside fragments too. A fragment counts once however often it is spread: what it asks for twice is answered once. */
function rootFieldNames(context: ValidationContext, selectionSet: SelectionSetNode, entered: Set<string>): string[] {
  return selectionSet.selections.flatMap((selection) => {
    if (selection.kind === Kind.FIELD) return [selection.name.value];
    if (selection.kind === Kind.INLINE_FRAGMENT) return rootFieldNames(context, selection.selectionSet, entered);
    const name = selection.name.value;
    if (entered.has(name)) return [];
    entered.add(name);
    const fragment = context.getFragment(name);
    return fragment ? rootFieldNames(context, fragment.selectionSet, entered) : [];
  });
}
