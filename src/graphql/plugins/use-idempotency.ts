/**
 * Idempotency-Key in GraphQL (docs/spec/generation.md#idempotency): the HTTP header, for an operation whose only root field is a
 * mutation that generates. Its result is stored before it is answered. On other operations the header has no effect, as on other REST
 * routes. A generation beside other root fields is refused, because a replay would have to repeat those, too.
 */
import {
  type DocumentNode,
  type ExecutionResult,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  print,
  type SelectionSetNode,
} from "graphql";
import type { Plugin } from "graphql-yoga";
import { AppError, invalidInput } from "../../errors.js";
import type { IdempotentRun, StoredAnswer } from "../../services/idempotency/idempotency.js";
import type { GraphQLContext } from "../context.js";
import { toPublicError, toPublicErrors } from "../public-errors.js";

/** A contract test compares it with the schema. */
export const GENERATION_MUTATIONS: ReadonlySet<string> = new Set([
  "createChatCompletion",
  "createEmbeddings",
  "createModeration",
  "rerank",
  "createResponse",
  "createSpeech",
  "createTranscription",
  "editImage",
  "generateImage",
  "generateMusic",
  "startImage",
  "startMusic",
  "startVideo",
  "varyImage",
]);

const OPERATION = "POST /graphql";
export const IDEMPOTENCY_HEADER = "idempotency-key";

interface Operation {
  readonly document: DocumentNode;
  readonly operationName?: string | null | undefined;
  readonly variableValues?: unknown;
  readonly contextValue: GraphQLContext & { readonly request?: Request };
}

/** The stored part of a result; `failure` when it was charged and still failed. */
type StoredResult = { readonly data: ExecutionResult["data"] } | { readonly failure: string };

export function useIdempotency(): Plugin<GraphQLContext, GraphQLContext> {
  return {
    onExecute: async ({ args, executeFn, setExecuteFn, setResultAndStopExecution }) => {
      const operation: Operation = args;
      const { contextValue: ctx } = operation;
      // On a WebSocket there is no request.
      const key = ctx.request?.headers.get(IDEMPOTENCY_HEADER) ?? null;
      if (key === null) return;
      try {
        if (!generates(operation)) return;
        const { document, operationName = null, variableValues = {} } = operation;
        const input = { document: print(document), operationName, variables: variableValues };
        const begun = await ctx.services.idempotency.begin(ctx, { key, operation: OPERATION, input });
        if (begun.kind === "replay") return setResultAndStopExecution(toReplay(begun.answer));
        Object.assign(ctx, { reservedId: begun.run.reservedId });
        setExecuteFn((all) => keep(begun.run, ctx, async () => executeFn(all) as ExecutionResult | Promise<ExecutionResult>));
      } catch (error) {
        setResultAndStopExecution({ errors: [toPublicError(error, ctx)] });
      }
    },
  };
}

async function keep(run: IdempotentRun, ctx: GraphQLContext, execute: () => Promise<ExecutionResult>): Promise<ExecutionResult> {
  try {
    const result = await execute();
    const errors = result.errors && toPublicErrors(result.errors, ctx);
    if (errors) await run.fail(() => toAnswer({ failure: errors[0]?.message ?? "" }));
    else await run.succeed(toAnswer({ data: result.data }));
    return errors ? { ...result, errors } : result;
  } catch (error) {
    await run.fail(() => toAnswer({ failure: "It was cut when its reader left." }));
    throw error;
  }
}

function toAnswer(result: StoredResult): StoredAnswer {
  return { statusCode: 200, headers: {}, body: Buffer.from(JSON.stringify(result)) };
}

function toReplay({ body }: StoredAnswer): ExecutionResult {
  const result = JSON.parse(Buffer.from(body).toString("utf8")) as StoredResult;
  if ("failure" in result) throw new AppError("CONFLICT", `This request was charged and failed all the same: ${result.failure}`);
  return { data: result.data ?? null, extensions: { idempotentReplay: true } };
}

export function countGenerations(document: DocumentNode, { operation, selectionSet }: OperationDefinitionNode): number {
  if (operation !== OperationTypeNode.MUTATION) return 0;
  return [...rootFields(document, selectionSet).values()].filter((name) => GENERATION_MUTATIONS.has(name)).length;
}

/** True for a single generation. Throws BAD_REQUEST for a generation beside other fields. */
function generates({ document, operationName }: Operation): boolean {
  const operation = getOperationAST(document, operationName);
  if (!operation || countGenerations(document, operation) === 0) return false;
  if (rootFields(document, operation.selectionSet).size === 1) return true;
  throw invalidInput("With an Idempotency-Key a generation must be the operation's only field.", "Idempotency-Key");
}

/**
 * The field names by response key: fields requested twice under one key run once. Each fragment is entered once, however often it is
 * spread.
 */
export function rootFields(
  document: DocumentNode,
  { selections }: SelectionSetNode,
  found = new Map<string, string>(),
  entered = new Set<string>(),
): Map<string, string> {
  for (const selection of selections) {
    if (selection.kind === Kind.FIELD) found.set((selection.alias ?? selection.name).value, selection.name.value);
    else if (selection.kind === Kind.INLINE_FRAGMENT) rootFields(document, selection.selectionSet, found, entered);
    else if (!entered.has(selection.name.value)) {
      const { value } = selection.name;
      entered.add(value);
      const fragment = document.definitions.find((one) => one.kind === Kind.FRAGMENT_DEFINITION && one.name.value === value);
      if (fragment?.kind === Kind.FRAGMENT_DEFINITION) rootFields(document, fragment.selectionSet, found, entered);
    }
  }
  return found;
}
