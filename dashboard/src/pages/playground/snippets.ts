/** Code for a request in several languages. The key is always `$SLUICE_API_KEY`, never a real one. */
import { GATEWAY_URL } from "../../client/place.js";
import { shellQuoted } from "../../ui/program-text.js";

type Json = Readonly<Record<string, unknown>>;

export interface Request {
  /** Path of the REST API, such as "/v1/chat/completions". */
  readonly path: string;
  /** Body with the field names of the REST API. */
  readonly body: Json;
  /** Names of file fields, which make the request a multipart form. A name may occur several times. */
  readonly files?: readonly string[];
  /**
   * Method of the OpenAI SDKs, null when they have none. `own` lists fields that only this gateway has: the Python SDK takes them in
   * `extra_body`.
   */
  readonly sdk: { readonly method: string; readonly own?: readonly string[] } | null;
  readonly graphql: {
    readonly field: string;
    readonly type: string;
    readonly selection: string;
    readonly input: Json;
    /** Paths of files in the input, such as "files.0". The input has null there. */
    readonly files?: readonly string[];
  };
  /** Sends the body as query of a GET request. */
  readonly isGet?: boolean;
  /** File name for a binary response. */
  readonly output?: string;
  /** Last line of the program, which uses the answer. */
  readonly print?: { readonly python: string; readonly node: string };
}

export function asCode(request: Request): Readonly<Record<string, string>> {
  return {
    curl: curlOf(request),
    ...(request.sdk && { Python: pythonOf(request), Node: nodeOf(request) }),
    GraphQL: graphqlOf(request),
  };
}

const AUTHORIZATION = `  -H "Authorization: Bearer $SLUICE_API_KEY"`;

function curlOf({ path, body, files = [], isGet = false, output }: Request): string {
  const saved = output === undefined ? [] : [`  -o ${output}`];
  if (isGet) {
    const query = new URLSearchParams(Object.entries(body).map(([name, value]) => [name, String(value)])).toString();
    return [`curl ${shellQuoted(`${GATEWAY_URL}${path}?${query}`)}`, AUTHORIZATION, ...saved].join(" \\\n");
  }
  const isForm = files.length > 0;
  const fields = isForm
    ? [
        ...files.map((name) => `  -F ${name}=@FILE`),
        // With -F, curl would read a value that begins with @ or < from a file.
        ...Object.entries(body).flatMap(([name, value]) =>
          (Array.isArray(value) ? value : [value]).map((one: unknown) => `  --form-string ${shellQuoted(`${name}=${textOf(one)}`)}`),
        ),
      ]
    : [`  -H "Content-Type: application/json"`, `  -d ${shellQuoted(JSON.stringify(body, null, 2))}`];
  return [`curl ${GATEWAY_URL}${path}`, AUTHORIZATION, ...fields, ...saved].join(" \\\n");
}

const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

/** File fields as arguments. A name that occurs several times gets a list. */
function filesOf(files: readonly string[], open: string): readonly (readonly [name: string, value: string])[] {
  return [...new Set(files)].map((name) => {
    const count = files.filter((other) => other === name).length;
    return [name, count === 1 ? open : `[${Array(count).fill(open).join(", ")}]`];
  });
}

function pythonOf({ sdk, body, files = [], print }: Request): string {
  const own = Object.entries(body).filter(([name]) => sdk?.own?.includes(name));
  const fields = [
    ...filesOf(files, 'open("FILE", "rb")').map(([name, value]) => `    ${name}=${value},`),
    ...Object.entries(body)
      .filter(([name]) => !sdk?.own?.includes(name))
      .map(([name, value]) => `    ${name}=${pythonText(value)},`),
    ...(own.length > 0 ? [`    extra_body=${pythonText(Object.fromEntries(own))},`] : []),
  ];
  return `import os
from openai import OpenAI

client = OpenAI(base_url="${GATEWAY_URL}/v1", api_key=os.environ["SLUICE_API_KEY"])
answer = client.${sdk?.method}(
${fields.join("\n")}
)${print ? `\n${print.python}` : ""}`;
}

function nodeOf({ sdk, body, files = [], print }: Request): string {
  const fields = [
    ...filesOf(files, 'fs.createReadStream("FILE")').map(([name, value]) => `  ${name}: ${value},`),
    ...Object.entries(body).map(([name, value]) => `  ${name}: ${JSON.stringify(value, null, 2).replaceAll("\n", "\n  ")},`),
  ];
  return `${files.length > 0 ? 'import fs from "node:fs";\n' : ""}import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${GATEWAY_URL}/v1", apiKey: process.env.SLUICE_API_KEY });
const answer = await client.${sdk?.method}({
${fields.join("\n")}
});${print ? `\n${print.node}` : ""}`;
}

function graphqlOf({ graphql: { field, type, selection, input, files = [] } }: Request): string {
  const query = `mutation ($input: ${type}!) { ${field}(input: $input) { ${selection} } }`;
  const operation = JSON.stringify({ query, variables: { input } }, null, 2);
  const map = Object.fromEntries(files.map((path, index) => [String(index), [`variables.input.${path}`]]));
  const lines =
    files.length > 0
      ? [
          `  -H "GraphQL-Preflight: 1"`,
          `  --form-string ${shellQuoted(`operations=${operation}`)}`,
          `  --form-string ${shellQuoted(`map=${JSON.stringify(map)}`)}`,
          ...files.map((_, index) => `  -F ${index}=@FILE`),
        ]
      : [`  -H "Content-Type: application/json"`, `  -d ${shellQuoted(operation)}`];
  return [`curl ${GATEWAY_URL}/graphql`, AUTHORIZATION, ...lines].join(" \\\n");
}

function pythonText(value: unknown, indent = "    "): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const [open, close, parts] = Array.isArray(value)
    ? ["[", "]", value.map((item) => pythonText(item, inner))]
    : ["{", "}", Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${pythonText(item, inner)}`)];
  const line = `${open}${parts.join(", ")}${close}`;
  return line.length <= 72 && !line.includes("\n")
    ? line
    : `${open}\n${parts.map((part) => `${inner}${part},`).join("\n")}\n${indent}${close}`;
}

/** Converts a GraphQL input to REST: `maxTokens` to `max_tokens`, and values of enums to lower case. */
export function wireNames(input: Json, enums: readonly string[] = []): Json {
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      enums.includes(name) && typeof value === "string" ? value.toLowerCase() : value,
    ]),
  );
}
