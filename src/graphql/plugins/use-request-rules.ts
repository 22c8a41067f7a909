/**
 * Requirements of an HTTP request besides its document. They are checked before anything runs, and the error names the missing
 * header: a mutation that is charged but cannot be answered would be our fault.
 */
import { useCSRFPrevention } from "@graphql-yoga/plugin-csrf-prevention";
import { GraphQLError, getOperationAST, OperationTypeNode } from "graphql";
import type { Plugin } from "graphql-yoga";
import { statusOf } from "../../http/errors.js";
import type { GraphQLContext } from "../context.js";

/** Any of these makes a browser send a preflight. Forms and images of other sites cannot send them. */
const CSRF_HEADERS = ["x-graphql-yoga-csrf", "apollo-require-preflight", "x-apollo-operation-name", "graphql-preflight"];

const EVENT_STREAM = "text/event-stream";
const ANSWER_TYPES = ["application/json", "application/graphql-response+json", EVENT_STREAM, "multipart/mixed"];

/** Yoga answers without a body when the client accepts none of its types. */
export const NOT_ACCEPTABLE = `Send an Accept header with ${ANSWER_TYPES.slice(0, -1).join(", ")} or ${ANSWER_TYPES.at(-1)}, in UTF-8.`;

/**
 * Cross-site request forgery relies on credentials that a browser adds by itself: a session cookie, and an address inside of a
 * network. It never adds `Authorization: Bearer`, so a GET with a key there (which has already been verified) needs no further proof.
 */
export function useCsrfRule(): Plugin {
  const { onRequestParse } = useCSRFPrevention({ requestHeaders: CSRF_HEADERS });
  return {
    onRequestParse: (payload) => {
      const { method, headers } = payload.request;
      if (method === "GET" && headers.has("authorization")) return;
      try {
        onRequestParse?.(payload);
      } catch {
        const key = method === "GET" ? ", or the key as Authorization: Bearer" : "";
        throw refusal(
          `Send one of the headers ${CSRF_HEADERS.join(", ")} with any value${key}. Without them a page of another site could send this request.`,
          statusOf("FORBIDDEN"),
        );
      }
    },
  };
}

export function useRequestRules(): Plugin<GraphQLContext, GraphQLContext> {
  return {
    onRequestParse: ({ request, requestParser }) => {
      if (request.method === "POST" && !requestParser) {
        throw refusal(
          "Send the operation with the header Content-Type: application/json, or with files as multipart/form-data.",
          statusOf("UNSUPPORTED_MEDIA_TYPE"),
        );
      }
      if (!ANSWER_TYPES.some((type) => accepts(request, type))) throw refusal(NOT_ACCEPTABLE, 406);
    },
    onParams: ({ params: { operationName } }) => {
      if (operationName !== undefined && operationName !== null && typeof operationName !== "string") {
        throw refusal("operationName must be text.", statusOf("BAD_REQUEST"));
      }
    },
    onParse: () => {
      return ({ result, context: { request, params } }) => {
        if (request?.method !== "GET" || result === null || result instanceof Error) return;
        if (getOperationAST(result, params.operationName)?.operation !== OperationTypeNode.MUTATION) return;
        throw refusal("Send a mutation with POST: with GET only queries are asked.", statusOf("METHOD_NOT_ALLOWED"), { Allow: "POST" });
      };
    },
    onSubscribe: ({ args, setResultAndStopExecution }) => {
      // On a WebSocket there is no request.
      const { request } = args.contextValue;
      if (!request || accepts(request, EVENT_STREAM)) return;
      const error = refusal(
        `A subscription is answered as ${EVENT_STREAM}: send it with Accept: ${EVENT_STREAM}, or over a WebSocket.`,
        406,
      );
      setResultAndStopExecution({ errors: [error] });
    },
  };
}

/** Whether the client accepts this type, as Yoga reads the header: in any order, without regard to preferences, and in UTF-8. */
function accepts(request: Pick<Request, "headers">, type: string): boolean {
  const [family] = type.split("/", 1);
  return rangesOf(request).some((range) => range === type || range === "*/*" || range === `${family}/*`);
}

export function names(request: Pick<Request, "headers">, type: string): boolean {
  return rangesOf(request).includes(type);
}

/** The format of parts in multipart/mixed, as Apollo Client names it. */
const PARTS_FORMAT = "deferspec=20220824";
const FORMAT_NAME = /^(?:defer|incremental|subscription)spec=/;

/** Whether the client explicitly requests multipart/mixed, and no format of its parts that is not ours: such an answer is whole. */
export function namesParts(request: Pick<Request, "headers">): boolean {
  return mediaRangesOf(request).some(({ type, parameters }) => {
    const formats = parameters.map((parameter) => parameter.replaceAll('"', "")).filter((parameter) => FORMAT_NAME.test(parameter));
    return type === "multipart/mixed" && formats.every((format) => format === PARTS_FORMAT);
  });
}

function rangesOf(request: Pick<Request, "headers">): string[] {
  return mediaRangesOf(request).flatMap(({ type, parameters }) => {
    return parameters.every((parameter) => !parameter.startsWith("charset=") || parameter === "charset=utf-8") ? [type] : [];
  });
}

interface MediaRange {
  readonly type: string;
  readonly parameters: readonly string[];
}

function mediaRangesOf({ headers }: Pick<Request, "headers">): readonly MediaRange[] {
  const ranges = (headers.get("accept") || "*/*").toLowerCase().split(",");
  return ranges.map((range) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
    return { type, parameters };
  });
}

function refusal(message: string, status: number, headers: Readonly<Record<string, string>> = {}): GraphQLError {
  return new GraphQLError(message, { extensions: { code: "BAD_REQUEST", http: { status, headers } } });
}
