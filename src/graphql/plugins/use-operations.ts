/**
 * Prepares an operation on every transport: coerces its variables, counts its cost, answers its introspection, and refuses it beyond
 * a limit before anything runs. The answer has the cost as `extensions.cost`.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type NamedTypeNode,
  type OperationDefinitionNode,
} from "graphql";
import type { Plugin } from "graphql-yoga";
import type { GraphQLContext } from "../context.js";
import { costOf } from "../cost.js";
import { type Fragments, fragmentsOf } from "../documents/fragments.js";
import { readsParts, withoutDirectives } from "../incremental-delivery.js";
import { asksForSchema, type Introspection, introspect, isIntrospection } from "../introspection.js";
import { GRAPHQL_COST_MAX, GRAPHQL_PARTS_MAX } from "../limits.js";
import { toPublicErrors } from "../public-errors.js";
import { CoercedValue } from "../scalars.js";
import { coerceVariables, type Values } from "../variables.js";
import { isStream } from "./use-app-errors.js";

type Args = ExecutionArgs & { readonly contextValue: GraphQLContext & { readonly request?: Request } };

/** An operation that may run. */
interface Prepared {
  readonly cost: number;
  readonly document: DocumentNode;
  readonly variableValues: Values;
  readonly introspection: Introspection | null;
}

/** A refused operation. Its cost is null when its variables are invalid. */
interface Refused {
  readonly cost: number | null;
  readonly errors: readonly GraphQLError[];
}

type AddCost = <Result>(result: Result, setResult: (result: Result) => void) => void;

export function useOperations(): Plugin<GraphQLContext, GraphQLContext> {
  return {
    // A large input was parsed in this turn, is coerced in the next, and runs in a third.
    onParams: ({ context }) => ((context as GraphQLContext).hasLargeInput ? nextTurn() : undefined),
    onExecute: ({ args, executeFn, setExecuteFn, setResultAndStopExecution }) => {
      const prepared = prepare(args, readsParts(args.contextValue));
      if (!prepared) return undefined;
      if ("errors" in prepared) setResultAndStopExecution({ errors: toPublicErrors(prepared.errors, args.contextValue) });
      else {
        const { introspection } = prepared;
        if (introspection) setExecuteFn((all) => runBesideIntrospection(prepared, introspection, all, executeFn));
        else setExecuteFn(runPrepared(prepared, args.contextValue, executeFn));
      }
      const addCost = addCostOnce(prepared.cost);
      return {
        onExecuteDone: ({ result, setResult }) => {
          if (isStream(result)) return { onNext: (event) => addCost(event.result, event.setResult) };
          addCost(result, setResult);
          return undefined;
        },
      };
    },
    onSubscribe: ({ args, subscribeFn, setSubscribeFn, setResultAndStopExecution }) => {
      // Its answers are already parts.
      const prepared = prepare(args, false);
      if (!prepared) return undefined;
      if ("errors" in prepared) setResultAndStopExecution({ errors: toPublicErrors(prepared.errors, args.contextValue) });
      else setSubscribeFn(runPrepared(prepared, args.contextValue, subscribeFn));
      const addCost = addCostOnce(prepared.cost);
      return {
        onSubscribeResult: ({ result, setResult }) => {
          if (isStream(result)) return { onNext: (event) => addCost(event.result, event.setResult) };
          addCost(result, setResult);
          return undefined;
        },
      };
    },
  };
}

/** Runs the prepared document with its coerced variables; a large input runs in a turn of its own. */
function runPrepared<Input extends object, Result>(
  { document, variableValues }: Prepared,
  { hasLargeInput }: GraphQLContext,
  run: (all: Input) => Result | Promise<Result>,
): (all: Input) => Result | Promise<Result> {
  const start = (all: Input) => run({ ...all, document, variableValues });
  return hasLargeInput ? (all) => nextTurn().then(() => start(all)) : start;
}

/** The first of several parts has it. */
function addCostOnce(requested: number | null): AddCost {
  let isAdded = requested === null;
  return (result, setResult) => {
    if (isAdded) return;
    isAdded = true;
    const { extensions } = result as ExecutionResult;
    setResult({ ...result, extensions: { ...extensions, cost: { requested, maximum: GRAPHQL_COST_MAX } } });
  };
}

/** Null without such an operation, which execution refuses with its own message. */
function prepare({ schema, document, operationName, variableValues }: Args, mayBeInParts: boolean): Prepared | Refused | null {
  const operation = getOperationAST(document, operationName);
  if (!operation) return null;
  const coerced = coerceVariables(schema, operation, variableValues ?? {});
  if (coerced.errors) return { cost: null, errors: coerced.errors };
  const { values } = coerced;
  const { fragments, isAboutSchema } = knownOf(document, operation);
  const { cost, parts } = costOf({ schema, document, operation, fragments, values });
  if (cost > GRAPHQL_COST_MAX) return { cost, errors: [tooDear(`costs ${cost}`)] };
  const isInParts = mayBeInParts && !isAboutSchema;
  if (isInParts && parts > GRAPHQL_PARTS_MAX) return { cost, errors: [tooManyParts(parts)] };
  const executed = isInParts ? document : withoutDirectives(document);
  const prepared = { document: runnable(executed, operationName), variableValues: wrapped(values) };
  return isAboutSchema ? withIntrospection(prepared, schema, cost, operationName, values) : { ...prepared, cost, introspection: null };
}

function withIntrospection(
  prepared: Pick<Prepared, "document" | "variableValues">,
  schema: GraphQLSchema,
  costOfOthers: number,
  operationName: string | null | undefined,
  values: Values,
): Prepared | Refused {
  const operation = operationOf(prepared.document, operationName);
  const introspection = introspect(schema, operation, knownOf(prepared.document, operation).fragments, values);
  const cost = costOfOthers + introspection.cost;
  // Counting stopped at the limit.
  if (cost > GRAPHQL_COST_MAX) return { cost, errors: [tooDear(`costs ${introspection.data ? cost : `more than ${GRAPHQL_COST_MAX}`}`)] };
  return { ...prepared, cost, introspection };
}

function operationOf(document: DocumentNode, operationName: string | null | undefined): OperationDefinitionNode {
  return getOperationAST(document, operationName) as OperationDefinitionNode;
}

function tooDear(costs: string): GraphQLError {
  return new GraphQLError(
    `The operation ${costs}, and at most ${GRAPHQL_COST_MAX} is allowed: ask for smaller pages, fewer fields or fewer generations.`,
  );
}

function tooManyParts(parts: number): GraphQLError {
  return new GraphQLError(
    `The operation defers and streams up to ${parts} parts, and at most ${GRAPHQL_PARTS_MAX} are allowed: do so outside of lists, or ask for smaller pages.`,
  );
}

/** Computed once per operation: Yoga caches documents by their text. */
interface Known {
  readonly fragments: Fragments;
  readonly isAboutSchema: boolean;
}

const KNOWN = new WeakMap<OperationDefinitionNode, Known>();

function knownOf(document: DocumentNode, operation: OperationDefinitionNode): Known {
  const known = KNOWN.get(operation);
  if (known) return known;
  const fragments = fragmentsOf(document);
  const found = { fragments, isAboutSchema: asksForSchema(operation, fragments) };
  KNOWN.set(operation, found);
  return found;
}

const ANY: NamedTypeNode = { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: "JSON" } };
const RUNNABLE = new WeakMap<OperationDefinitionNode, DocumentNode>();

/** The document with variables of any type: their values are already coerced, and the executor would coerce them again. */
function runnable(document: DocumentNode, operationName: string | null | undefined): DocumentNode {
  const operation = operationOf(document, operationName);
  if (!operation.variableDefinitions || operation.variableDefinitions.length === 0) return document;
  const known = RUNNABLE.get(operation);
  if (known) return known;
  const variableDefinitions = operation.variableDefinitions.map(({ kind, variable }) => ({ kind, variable, type: ANY }));
  const made = replaceOperation(document, operation, { ...operation, variableDefinitions });
  RUNNABLE.set(operation, made);
  return made;
}

function replaceOperation(document: DocumentNode, operation: OperationDefinitionNode, other: OperationDefinitionNode): DocumentNode {
  return { ...document, definitions: document.definitions.map((definition) => (definition === operation ? other : definition)) };
}

function wrapped(values: Values): Values {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value === null ? null : new CoercedValue(value)]));
}

/** Root fields other than introspection are executed, and all are answered in the operation's order. */
async function runBesideIntrospection(
  { document, variableValues }: Prepared,
  { data: ofSchema, fields }: Introspection,
  all: ExecutionArgs,
  execute: (args: ExecutionArgs) => unknown,
): Promise<ExecutionResult> {
  const others = [...fields.values()].flatMap((nodes) => (isIntrospection(nodes[0]) ? [] : nodes));
  if (others.length === 0) return { data: ofSchema };
  const operation = operationOf(document, all.operationName);
  const selectionSet = { kind: Kind.SELECTION_SET, selections: others } as const;
  const rest = replaceOperation(document, operation, { ...operation, selectionSet });
  const result = (await execute({ ...all, document: rest, variableValues })) as ExecutionResult;
  const { data } = result;
  if (!data) return result;
  const answered = new Map([...Object.entries(data), ...Object.entries(ofSchema ?? {})]);
  return { ...result, data: Object.fromEntries([...fields.keys()].map((name) => [name, answered.get(name)])) };
}
