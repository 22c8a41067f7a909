/** The OpenAPI document makes a client whose types fit: swagger-typescript-api. */
import { spawnSync } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generateApi } from "swagger-typescript-api";
import { expect, it } from "vitest";
import { createOpenApiDocument } from "../../src/rest/openapi/document.js";
import { recordRoutes } from "../../src/rest/router.js";

/** A program that uses the generated client. */
const PROGRAM = `import { Api } from "./client.js";
const api = new Api({ baseUrl: "http://localhost:4000" });
const { data } = await api.v1.createChatCompletion({ messages: [{ role: "user", content: "Hi" }] });
export const said: unknown = data.choices[0]?.message?.content;
const balance = await api.account.getBalance();
export const credits: number = balance.data.balance;
`;

it("makes a client that compiles", async () => {
  const directory = join(process.cwd(), "node_modules", ".cache", "sluice", `openapi-client-${process.pid}`);
  await mkdir(directory, { recursive: true });
  try {
    const spec = JSON.parse(JSON.stringify(createOpenApiDocument(recordRoutes())));
    const { files } = await generateApi({ spec, httpClientType: "fetch", silent: true });
    const [client] = files;
    await writeFile(join(directory, "client.ts"), (client?.fileContent ?? "").replace("// @ts-nocheck", ""));
    await writeFile(join(directory, "program.ts"), PROGRAM);

    const options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext"];
    const tsc = join(process.cwd(), "node_modules/typescript/bin/tsc");
    const { stdout } = spawnSync(process.execPath, [tsc, ...options, "--lib", "es2023,dom,dom.iterable", "--ignoreConfig", "program.ts"], {
      cwd: directory,
      encoding: "utf8",
    });

    expect(stdout).toBe("");
  } finally {
    await rm(directory, { recursive: true });
  }
});
