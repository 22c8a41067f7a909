/** Sends the examples of the OpenAPI document as they stand, to things that were made for them where a path names one. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { OpenApiDocument } from "../../src/rest/openapi/document.js";
import { createClient } from "../rest/client.js";
import type { TestApp } from "./app.js";
import { signedIn, signIn, signUp } from "./sign-in.js";

interface Parameter {
  readonly in: string;
  readonly name: string;
  readonly example?: string | number;
}

interface Operation {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: FormSchema; readonly example?: Record<string, unknown> }> };
}

interface FormSchema {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

export interface ExampleAnswer {
  readonly status: number;
  /** Without its parameters. */
  readonly contentType: string | null;
  readonly text: string;
}

/** Where nothing answers: no test asks the hosts that the examples name. */
const NOBODY = "http://127.0.0.1:9/";

let made = 0;

/** Asks an operation with each of its bodies. */
export function createExampleClient(app: TestApp, document: OpenApiDocument) {
  const operationOf = (method: string, path: string) => document.paths[path]?.[method] as Operation;
  const bodyOf = (path: string) => operationOf("post", path).requestBody?.content["application/json"]?.example ?? {};
  const client = createClient(app.baseUrl, app.key);

  const make = async (path: string, more: object = {}): Promise<Record<string, string>> => {
    const answer = await client.post(path, { ...bodyOf(path), ...more });
    expect(answer.status, answer.text).toBe(200);
    return answer.json<Record<string, string>>();
  };
  const named = () => {
    made += 1;
    return { name: `example-${made}` };
  };
  const upload = async (tags?: readonly string[]) => {
    const announced = await make("/media/upload", { data: undefined, name: undefined, contentType: "text/plain", size: 5, tags });
    await fetch(announced.uploadUrl ?? "", { method: "PUT", headers: { "Content-Type": "text/plain" }, body: "hello" });
    return announced.id ?? "";
  };
  const chatted = async () => {
    const answer = await client.post("/v1/chat/completions", { model: "sandbox/text", messages: [{ role: "user", content: "Hello" }] });
    return answer.headers.get("x-generation-id") ?? "";
  };
  let filmed: Promise<string> | undefined;
  const film = (_path: string, method: string) => {
    if (method === "delete") return make("/v1/videos").then(({ id = "" }) => id);
    filmed ??= finished();
    return filmed;
  };
  const finished = async () => {
    const { id = "" } = await make("/v1/videos");
    await expect.poll(async () => (await client.get(`/v1/videos/${id}`)).json().status, { timeout: 30_000 }).toBe("completed");
    return id;
  };

  /** An alert of the owner's. */
  const alerted = async () => {
    const { prisma } = app.database;
    const { id: accountId } = await prisma.account.findFirstOrThrow({ where: { isOperator: true } });
    const alert = { id: randomUUID(), accountId, kind: "top_up_failed", occurrence: randomUUID(), subjectId: "", details: {} } as const;
    return (await prisma.alert.create({ data: { ...alert, isSilenced: false, createdAt: new Date() } })).id;
  };

  const respond = async (background: boolean) => (await make("/v1/responses", { background })).id ?? "";
  /** The first item of a conversation. */
  const itemOf = async (path: string) => (await client.get(path.slice(0, path.lastIndexOf("/")))).json<{ first_id: string }>().first_id;

  const limit = async () => {
    const { id: apiKeyId } = await make("/account/keys");
    return (await client.post("/account/usage-limits", { apiKeyId, metric: "requests", amount: 9, minutes: 1 })).json<{ id?: string }>();
  };

  /** What the parameters of a path stand for, where an example cannot know it. */
  const makers: Readonly<Record<string, (path: string, method: string) => Promise<string>>> = {
    webhook: async () => (await make("/account/webhooks", { url: NOBODY })).id ?? "",
    vendorKey: async () => (await make("/account/vendor-keys", named())).id ?? "",
    usageLimit: async () => (await limit()).id ?? "",
    communityModel: async () => (await make("/account/my-models", named())).id ?? "",
    agent: async () => (await make("/account/agents", named())).id ?? "",
    integration: async () => (await make("/account/integrations")).id ?? "",
    generation: film,
    response: (path) => respond(path.endsWith("/cancel")),
    conversation: async () => (await make("/v1/conversations")).id ?? "",
    media: async (path, method) => {
      if (path.endsWith("/complete")) return upload();
      const id = await upload(["example"]);
      await client.post(`/media/upload/${id}/complete`, {});
      if (method === "delete") return id;
      return (await make("/media/upload")).id ?? "";
    },
    id: async (path) => {
      if (path.includes("/requests/")) return chatted();
      if (path.includes("/top-ups/")) return ((await make("/account/top-ups")) as { top_up?: { id?: string } }).top_up?.id ?? "";
      if (path.includes("/alerts/")) return alerted();
      if (path.includes("/runs/")) return (await make("/v1/runs")).id ?? "";
      if (path.includes("/apps/")) return (await make("/account/keys", { type: "publishable" })).id ?? "";
      return (await make("/account/keys")).id ?? "";
    },
  };

  const pathOf = async (method: string, path: string, parameters: readonly Parameter[]): Promise<string> => {
    let whole = path;
    for (const { name, example } of parameters.filter((one) => one.in === "path")) {
      const maker = makers[name];
      const value = example !== undefined && name !== "media" ? String(example) : await maker?.(path, method);
      whole = whole.replace(
        `{${name}}`,
        encodeURIComponent(value ?? (name === "delivery" ? await delivery(whole) : name === "item" ? await itemOf(whole) : "")),
      );
    }
    const query = parameters.filter((one) => one.in === "query" && one.example !== undefined);
    return query.length === 0 ? whole : `${whole}?${new URLSearchParams(query.map(({ name, example }) => [name, String(example)]))}`;
  };
  /** One whose first try is over. */
  const delivery = async (path: string) => {
    const [webhook] = path.split("/deliveries");
    const { id } = (await client.post(`${webhook}/test`, {})).json<{ id: string }>();
    // A try is counted when it begins.
    const failure = async () =>
      (await client.get(`${webhook}/deliveries`)).json<{ data: { lastError: string | null }[] }>().data[0]?.lastError;
    await expect.poll(failure, { timeout: 30_000 }).toEqual(expect.any(String));
    return id;
  };

  /** Only a session may do it. */
  const session = async (path: string): Promise<{ path: string; headers: Record<string, string> }> => {
    const person = await signUp(app);
    const other = await signIn(app, person);
    return { path: path.replace("{id}", other.sessionId), headers: signedIn(person) };
  };

  return async (method: string, template: string): Promise<readonly ExampleAnswer[]> => {
    const { parameters = [], requestBody } = operationOf(method, template);
    const ofSession = /^\/account\/sessions/.test(template) || (template === "/account/profile" && method === "patch");
    const answers: ExampleAnswer[] = [];
    if (template === "/account/earnings/convert") await app.database.pool.query("UPDATE account SET earned_nanocredits = 5 * 10 ^ 9");
    for (const [type, { schema, example }] of Object.entries(requestBody?.content ?? { "": { schema: {} } })) {
      const asked = ofSession ? await session(template) : { path: await pathOf(method, template, parameters), headers: null };
      const headers = asked.headers ?? { Authorization: `Bearer ${app.key}` };
      const unique = /^\/account\/(?:agents|my-models(?:\/endpoint-agents)?)$/.test(template)
        ? named()
        : template.endsWith("/my-models/test")
          ? { url: NOBODY }
          : template === "/account/usage-limits" && method === "post"
            ? { apiKeyId: (await make("/account/keys")).id }
            : {};
      const body = await toBody(type, schema, example && { ...example, ...unique });
      const response = await fetch(app.baseUrl + asked.path, {
        method: method.toUpperCase(),
        redirect: "manual",
        headers: { ...headers, ...(type !== "" && type !== "multipart/form-data" && { "Content-Type": type }) },
        ...(body !== null && { body }),
      });
      answers.push({
        status: response.status,
        contentType: response.headers.get("content-type")?.split(";", 1)[0] ?? null,
        text: await response.text(),
      });
    }
    return answers;
  };

  async function toBody(type: string, schema: FormSchema, example: object | undefined): Promise<string | FormData | Blob | null> {
    if (type === "") return null;
    if (type === "application/octet-stream") return new Blob(["hello"]);
    if (type === "application/x-www-form-urlencoded") return new URLSearchParams(example as Record<string, string>).toString();
    if (type === "application/json") return JSON.stringify(example ?? {});
    const form = new FormData();
    for (const [name, text] of Object.entries(example ?? {})) form.append(name, String(text));
    for (const name of schema.required ?? []) if (!form.has(name)) form.append(name, await fileFor(schema), "example");
    return form;
  }

  /** A recording where a transcription is asked for, else a picture. */
  async function fileFor({ properties }: FormSchema): Promise<Blob> {
    if (properties?.timestamp_granularities === undefined)
      return new Blob([Buffer.from(String((bodyOf("/media/upload") as { data: string }).data), "base64")], { type: "image/png" });
    const speech = await fetch(`${app.baseUrl}/v1/audio/speech`, {
      method: "POST",
      headers: { Authorization: `Bearer ${app.key}`, "Content-Type": "application/json" },
      body: JSON.stringify(bodyOf("/v1/audio/speech")),
    });
    return speech.blob();
  }
}
