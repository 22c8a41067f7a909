/**
 * Idempotency-Key on GraphQL (docs/spec/generation.md#idempotency): the HTTP header, for an operation whose only root field is a mutation
 * that generates. Its result is stored before it is answered. On any other operation the header has no meaning, as on other REST
 * routes; beside further root fields a generation is refused, because a replay would have to repeat those, too.
 */
import { type DocumentNode, type ExecutionResult, getOperationAST, Kind, OperationTypeNode, print, type SelectionSetNode } from "graphql";
import type { Plugin } from "graphql-yoga";
import { AppError, invalidInput } from "../../errors.js";
import type { IdempotentRun, StoredAnswer } from "../../services/idempotency/idempotency.js";
import type { GraphQLContext } from "../context.js";
import { toPublicError, toPublicErrors } from "../public-errors.js";

/** A contract test holds it against the schema. */
export const GENERATION_MUTATIONS: ReadonlySet<string> = new Set([
  "createChatCompletion",
  "createEmbeddings",
  "createModeration",
  "createResponse",
  "createSpeech",
  "createTranscription",
  "editImage",
  "generateImage",
  "generateMusic",
  "generateVideo",
  "startMusic",
]);

const OPERATION = "POST /graphql";

interface Operation {
  readonly document: DocumentNode;
  readonly operationName?: string | null | undefined;
  readonly variableValues?: unknown;
  readonly contextValue: GraphQLContext & { readonly request?: Request };
}

/** What is kept of a result; `failure` of one that was charged and failed all the same. */
type StoredResult = { readonly data: ExecutionResult["data"] } | { readonly failure: string };

export function useIdempotency(): Plugin<GraphQLContext, GraphQLContext> {
  return {
    onExecute: async ({ args, executeFn, setExecuteFn, setResultAndStopExecution }) => {
      const operation: Operation = args;
      const { contextValue: ctx } = operation;
      // On a WebSocket there is no request.
      const key = ctx.request?.headers.get("idempotency-key") ?? null;
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

/** True for a generation alone. Throws BAD_REQUEST for one that is not alone. */
function generates({ document, operationName }: Operation): boolean {
  const operation = getOperationAST(document, operationName);
  if (operation?.operation !== OperationTypeNode.MUTATION) return false;
  const names = rootFields(document, operation.selectionSet);
  if (!names.some((name) => GENERATION_MUTATIONS.has(name))) return false;
  if (names.length === 1) return true;
  throw invalidInput("With an Idempotency-Key a generation must be the operation's only field.", "Idempotency-Key");
}

/** One name for each time that a field is asked for; validation has seen to it that fragments lead nowhere in a circle. */
function rootFields(document: DocumentNode, { selections }: SelectionSetNode): string[] {
  return selections.flatMap((selection) => {
    if (selection.kind === Kind.FIELD) return [selection.name.value];
    if (selection.kind === Kind.INLINE_FRAGMENT) return rootFields(document, selection.selectionSet);
    const { value } = selection.name;
    const fragment = document.definitions.find((one) => one.kind === Kind.FRAGMENT_DEFINITION && one.name.value === value);
    return fragment?.kind === Kind.FRAGMENT_DEFINITION ? rootFields(document, fragment.selectionSet) : [];
  });
}
