/** Runs once before all test files, so that they find the built server and the templates of their databases and do not each make them. */
import type { TestProject } from "vitest/node";
import { build, CLIENT, DASHBOARD, DOCUMENTS, EXPLORER, SERVER } from "../../scripts/build.mjs";
import { ensureTemplate } from "../support/database.js";
import { startSuiteServer } from "../support/suite-server.js";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const built = [build({ outputs: [CLIENT, EXPLORER, DOCUMENTS, DASHBOARD, SERVER] })];
  const [server] = await Promise.all([startSuiteServer(), ensureTemplate(), ...built]);
  project.provide("suiteServer", server?.place ?? null);
  return async () => server?.stop();
}
