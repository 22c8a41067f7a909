/**
 * Files in variables, according to the GraphQL multipart request specification: a form with `operations` (the request as JSON, null
 * where a file belongs), `map` (the paths of each file) and the files. Only HTTP supports files. The CSRF prevention, which runs
 * first, keeps pages of other sites from sending such forms.
 */
import { GraphQLError } from "graphql";
import type { GraphQLParams, Plugin } from "graphql-yoga";
import { statusOf } from "../../http/errors.js";
import { isForm, UploadedFile } from "../../http/uploads.js";
import { jsonExcess } from "../../lib/json-bounds.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import { GRAPHQL_BODY_BYTES_MAX, GRAPHQL_FILE_PATHS_MAX, GRAPHQL_FILES_MAX, GRAPHQL_JSON_BOUNDS } from "../../limits.js";

const FORM_LIMITS = {
  fields: 2,
  files: GRAPHQL_FILES_MAX,
  parts: GRAPHQL_FILES_MAX + 2,
  fieldSize: GRAPHQL_BODY_BYTES_MAX,
  fieldNameSize: 100,
  headerSize: 8 * 1024,
} as const;

/** The request class that Yoga uses, with limits for its forms. */
interface FormRequest extends Request {
  formData(options?: { readonly formDataLimits: typeof FORM_LIMITS }): Promise<FormData>;
}

type JsonObject = Record<string, unknown>;

export function useUploads(): Plugin {
  return {
    onRequestParse: ({ request, setRequestParser }) => {
      if (request.method === "POST" && isForm(request.headers.get("content-type"))) setRequestParser(parseForm);
    },
  };
}

async function parseForm(request: Request): Promise<GraphQLParams> {
  const form = await (request as FormRequest).formData({ formDataLimits: FORM_LIMITS }).catch((error: unknown) => {
    throw toFormError(error);
  });
  const operations = parseObject(form, "operations");
  const map = form.has("map") ? parseObject(form, "map") : {};
  let paths = 0;
  for (const [name, targets] of Object.entries(map)) {
    const file = form.get(name);
    if (file === null || typeof file === "string")
      throw refusal(`The form holds no file ${JSON.stringify(name.slice(0, 100))}, which \`map\` names.`);
    if (!Array.isArray(targets)) throw refusal("`map` must hold a list of paths for each file.");
    paths += targets.length;
    if (paths > GRAPHQL_FILE_PATHS_MAX) throw refusal(`\`map\` may hold at most ${GRAPHQL_FILE_PATHS_MAX} paths.`);
    const [contentType = ""] = file.type.split(";", 1);
    const uploaded = new UploadedFile(file.name, contentType.trim().toLowerCase(), new Uint8Array(await file.arrayBuffer()));
    for (const target of targets) place(operations, target, uploaded);
  }
  return operations;
}

function parseObject(form: FormData, field: "operations" | "map"): JsonObject {
  const text = form.get(field);
  if (typeof text !== "string") throw refusal(`The form must have a field \`${field}\` with JSON text.`);
  const excess = jsonExcess(Buffer.from(text), GRAPHQL_JSON_BOUNDS);
  if (excess !== null) throw refusal(`The field \`${field}\` ${excess}.`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refusal(`The field \`${field}\` is not valid JSON.`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw refusal(`The field \`${field}\` must hold one JSON object.`);
  return value as JsonObject;
}

/** Only replaces an existing null, and only in the variables. */
function place(operations: JsonObject, target: unknown, file: UploadedFile): void {
  const keys = typeof target === "string" ? target.split(".") : [];
  const last = keys.pop();
  let holder: unknown = keys[0] === "variables" ? operations : null;
  for (const key of keys) holder = isHolder(holder) ? ownValue(holder, key) : null;
  if (last === undefined || !isHolder(holder) || ownValue(holder, last) !== null) {
    throw refusal("`map` must name places in the variables that are null.");
  }
  setOwnValue(holder, last, file);
}

function isHolder(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !(value instanceof UploadedFile);
}

function toFormError(error: unknown): unknown {
  if (!(error instanceof Error) || error.name === "AbortError") return error;
  return refusal(`The form is malformed: ${error.message}.`);
}

function refusal(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: "BAD_REQUEST", http: { status: statusOf("BAD_REQUEST") } } });
}
