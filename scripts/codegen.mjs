/**
 * The types of the documents in test/operations and dashboard, and the manifest of trusted documents: schema/persisted.json, each document beside
 * the digest that names it. With `--check` it fails when the stored manifest is not what the documents say.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build, DASHBOARD_DOCUMENTS, DOCUMENTS, projectRoot } from "./build.mjs";

await build({ outputs: [DOCUMENTS] });
const manifestOf = (folder) => JSON.parse(readFileSync(join(projectRoot, folder, "persisted-documents.json"), "utf8"));
const generated = { ...manifestOf(DOCUMENTS), ...manifestOf(DASHBOARD_DOCUMENTS) };
// In the order of their text, which begins with kind and name: a change of one document moves no other.
const sorted = Object.entries(generated).sort(([, one], [, other]) => (one < other ? -1 : 1));
const manifest = `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`;

const target = join(projectRoot, "schema/persisted.json");
if (!process.argv.includes("--check")) writeFileSync(target, manifest);
else if (readIfPresent(target) !== manifest) {
  console.error("schema/persisted.json is not what the documents say: run `npm run codegen` and look at the difference.");
  process.exitCode = 1;
}

function readIfPresent(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}
