/** Clients that other languages' usual generators make of the OpenAPI document: the code is complete, imports and compiles. */
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { findGoClients, GO_CLIENTS_ABSENT } from "../support/go-clients.js";
import { findGeneratorPython, GENERATOR_PYTHON_ABSENT } from "../support/python-clients.js";

const run = promisify(execFile);
const [python, go] = await Promise.all([findGeneratorPython(), findGoClients()]);
/** As printed; `npm run check` compares it with the routes. */
const DOCUMENT = new URL("../../schema/openapi.json", import.meta.url);
const { paths } = JSON.parse(await readFile(DOCUMENT, "utf8")) as { paths: Record<string, Record<string, { operationId: string }>> };
const operations = Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));

/** A folder with the document. */
async function documentFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-clients-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await cp(DOCUMENT, join(folder, "openapi.json"));
  return folder;
}

/** Imports all modules of the package `client`, and prints the names of those below `client.api`, or what failed. */
const IMPORT_ALL = `
import importlib, json, pkgutil, client
made, failed = [], []
for module in pkgutil.walk_packages(client.__path__, "client."):
    try:
        importlib.import_module(module.name)
        if module.name.startswith("client.api.") and not module.ispkg:
            made.append(module.name.rsplit(".", 1)[1])
    except Exception as error:
        failed.append(f"{module.name}: {error}")
print(json.dumps([made, failed]))
`;

describe("the OpenAPI document", () => {
  it("has no schema that ogen cannot read: a bound that is excluded by a number, or two patterns of one text", async () => {
    const schemas: Record<string, unknown>[] = [];
    JSON.parse(await readFile(DOCUMENT, "utf8"), (_, value: unknown) => {
      if (typeof value === "object" && value !== null && !Array.isArray(value)) schemas.push(value as Record<string, unknown>);
      return value;
    });

    expect(schemas.filter(({ type }) => type === "string").length).toBeGreaterThan(100);
    expect(schemas.filter(({ exclusiveMinimum, exclusiveMaximum }) => Number.isFinite(exclusiveMinimum ?? exclusiveMaximum))).toEqual([]);
    expect(schemas.filter(({ allOf, pattern }) => allOf !== undefined && pattern !== undefined)).toEqual([]);
  });

  it.skipIf(python === null)(
    `makes a client for Python that imports (left out where it is absent: ${GENERATOR_PYTHON_ABSENT})`,
    async () => {
      const folder = await documentFolder();
      const options = ["generate", "--path", "openapi.json", "--output-path", "client", "--meta", "none"];

      const { stdout: report } = await run(python ?? "", ["-m", "openapi_python_client", ...options], {
        cwd: folder,
        maxBuffer: 64 * 1024 * 1024,
      });

      expect(report).not.toContain("Unable to process schema");
      const { stdout } = await run(python ?? "", ["-c", IMPORT_ALL], { cwd: folder });
      const [made, failed] = JSON.parse(stdout) as [string[], string[]];
      expect(failed).toEqual([]);
      expect(made.map((name) => toPlain(name.replaceAll("_", ""))).sort()).toEqual(operations.map(toPlain).sort());
    },
  );

  it.skipIf(go === null)(`makes a client for Go that compiles (left out where it is absent: ${GO_CLIENTS_ABSENT})`, async () => {
    const folder = await documentFolder();
    const { generator = "", module = "" } = go ?? {};
    await cp(module, folder, { recursive: true });
    const options = ["-generate", "types,client", "-package", "client", "-o", "generated.go", "openapi.json"];

    await run(generator, options, { cwd: folder });

    await run("go", ["build", "./..."], { cwd: folder, env: { ...process.env, GOPROXY: "off", GOFLAGS: "-mod=mod" } });
    const code = (await readFile(join(folder, "generated.go"), "utf8")).toLowerCase();
    expect(operations.filter((id) => !code.includes(`func new${id.toLowerCase()}request`))).toEqual([]);
  });
});

function toPlain(name: string): string {
  return name.toLowerCase();
}
