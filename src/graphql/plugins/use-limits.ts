/**
 * What a document may ask for, on every transport (docs/spec/graphql.md#limits): depth, aliases, directives and tokens by GraphQL
 * Armor; cost with the page sizes that were really asked for, variables included; one account-changing field per operation.
 */
import { EnvelopArmor } from "@escape.tech/graphql-armor";
import { complexityFromQuery } from "@pothos/plugin-complexity";
import {
  type ASTVisitor,
  type DocumentNode,
  GraphQLError,
  type GraphQLObjectType,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  NoSchemaIntrospectionCustomRule,
  type SelectionSetNode,
  type ValidationContext,
} from "graphql";
import type { Plugin, YogaInitialContext } from "graphql-yoga";
import { ownValue } from "../../lib/own-values.js";
import { GRAPHQL_ALIASES_MAX, GRAPHQL_COST_MAX, GRAPHQL_DEPTH_MAX, GRAPHQL_DIRECTIVES_MAX, GRAPHQL_TOKENS_MAX } from "../../limits.js";
import type { GraphQLContext } from "../context.js";
import { toPublicError } from "../public-errors.js";

export interface DocumentLimits {
  /** False: the schema cannot be asked for. */
  readonly introspection: boolean;
}

export function documentLimits({ introspection }: DocumentLimits): Plugin<GraphQLContext>[] {
  const armor = new EnvelopArmor<YogaInitialContext & GraphQLContext>({
    maxDepth: { n: GRAPHQL_DEPTH_MAX },
    maxAliases: { n: GRAPHQL_ALIASES_MAX },
    maxDirectives: { n: GRAPHQL_DIRECTIVES_MAX },
    maxTokens: { n: GRAPHQL_TOKENS_MAX },
    // It cannot see page sizes that come as variables or defaults; useCostLimit can.
    costLimit: { enabled: false },
    // Suggestions also come from variables, which are no matter of validation; toPublicError drops them all.
    blockFieldSuggestion: { enabled: false },
  });
  return [...armor.protect().plugins, useValidationRules(introspection), useCostLimit()];
}

function useValidationRules(introspection: boolean): Plugin<GraphQLContext> {
  return {
    onValidate: ({ addValidationRule }) => {
      addValidationRule(OnePerOperationRule);
      if (!introspection) addValidationRule(NoSchemaIntrospectionCustomRule);
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

/** Judged when the variables are known, before anything runs. */
function useCostLimit(): Plugin<GraphQLContext> {
  return {
    onExecute: ({ args, setResultAndStopExecution }) => {
      const error = costError(args);
      if (error) setResultAndStopExecution({ errors: [error] });
    },
    onSubscribe: ({ args, setResultAndStopExecution }) => {
      const error = costError(args);
      if (error) setResultAndStopExecution({ errors: [error] });
    },
  };
}

interface Operation {
  readonly document: DocumentNode;
  readonly operationName?: string | null | undefined;
  readonly schema: GraphQLSchema;
  readonly variableValues?: Readonly<Record<string, unknown>> | null | undefined;
  readonly contextValue: GraphQLContext;
}

function costError(args: Operation): GraphQLError | null {
  const operation = getOperationAST(args.document, args.operationName);
  // No such operation, or variables of wrong types: execution refuses them in its own words.
  if (!operation) return null;
  const definitions = [operation, ...args.document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION)];
  const document: DocumentNode = { kind: Kind.DOCUMENT, definitions };
  const complexity = costOf(document, args);
  if (complexity === null || complexity <= GRAPHQL_COST_MAX) return null;
  const error = new GraphQLError(
    `The operation costs ${complexity}, and at most ${GRAPHQL_COST_MAX} is allowed: ask for smaller pages or fewer fields.`,
  );
  return toPublicError(error, args.contextValue);
}

function costOf(document: DocumentNode, { schema, variableValues, contextValue }: Operation): number | null {
  try {
    return complexityFromQuery(document, { ctx: contextValue, schema, variables: variableValues ?? {} }).complexity;
  } catch (error) {
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}
