/**
 * Writes the types of the documents that tests and the dashboard send, as `codegen.ts` says. It is what the command line of
 * GraphQL Code Generator does with that file, without that package's loaders of schemas from everywhere: 110 packages and a newer Node.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { preset } from "@graphql-codegen/client-preset";
import { codegen } from "@graphql-codegen/core";
import { build } from "esbuild";
import { buildSchema, lexicographicSortSchema, parse, printSchema } from "graphql";

const GLOB = "/**/*.graphql";

const { schema: schemaFile, generates, config, importExtension } = await readConfig();
const schemaAst = lexicographicSortSchema(buildSchema(readFileSync(schemaFile, "utf8"), { assumeValidSDL: true }));
const schema = parse(printSchema(schemaAst));
for (const [baseOutputDir, output] of Object.entries(generates)) {
  const shared = { importExtension, emitLegacyCommonJSImports: false };
  const parts = await preset.buildGeneratesSection({
    baseOutputDir,
    presetConfig: output.presetConfig,
    plugins: [],
    pluginMap: {},
    schema,
    schemaAst,
    documents: output.documents.flatMap(readDocuments),
    config: { ...config, ...shared },
    documentTransforms: (output.documentTransforms ?? []).map((transformObject) => ({ transformObject })),
  });
  const files = await Promise.all(parts.map(async (part) => [part.filename, await codegen({ ...part, ...shared })]));
  mkdirSync(baseOutputDir, { recursive: true });
  for (const [name, contents] of files) writeFileSync(name, contents);
}

/** `codegen.ts` is TypeScript, which the oldest supported Node does not read. */
async function readConfig() {
  const outfile = join("node_modules/.cache/sluice", `codegen-${process.pid}.mjs`);
  mkdirSync(dirname(outfile), { recursive: true });
  try {
    await build({ entryPoints: ["codegen.ts"], outfile, bundle: true, packages: "external", format: "esm", platform: "node" });
    return (await import(pathToFileURL(outfile).href)).default;
  } finally {
    rmSync(outfile, { force: true });
  }
}

function readDocuments(pattern) {
  if (!pattern.endsWith(GLOB)) throw new Error(`codegen.ts: ${pattern} does not end with ${GLOB}`);
  const folder = pattern.slice(0, -GLOB.length);
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".graphql"))
    .sort()
    .map((name) => {
      const location = join(folder, name);
      const rawSDL = readFileSync(location, "utf8");
      return { location, rawSDL, document: parse(rawSDL), hash: location };
    });
}
