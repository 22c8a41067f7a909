/**
 * Runs once before the test files that need it: builds, the templates of their databases, and the suite's PostgreSQL
 * server. Two projects share it.
 */
import type { TestProject } from "vitest/node";
import { build, CLIENT, DASHBOARD, DOCUMENTS, EXPLORER, SERVER } from "../../scripts/build.mjs";
import { ensureTemplate } from "../support/database.js";
import { startSuiteServer } from "../support/suite-server.js";

type Suite = Awaited<ReturnType<typeof startSuiteServer>>;

/** Each project loads this module for itself. */
const shared = globalThis as { suiteOfTests?: { readonly started: Promise<Suite>; users: number } };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  shared.suiteOfTests ??= { started: start(), users: 0 };
  const suite = shared.suiteOfTests;
  suite.users += 1;
  const server = await suite.started;
  project.provide("suiteServer", server?.place ?? null);
  return async () => {
    suite.users -= 1;
    if (suite.users === 0) await server?.stop();
  };
}

async function start(): Promise<Suite> {
  const built = build({ outputs: [CLIENT, EXPLORER, DOCUMENTS, DASHBOARD, SERVER] });
  const [server] = await Promise.all([startSuiteServer(), ensureTemplate(), built]);
  return server;
}
