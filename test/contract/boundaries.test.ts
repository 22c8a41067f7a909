/** The architecture's arrows: main → workers → app → { graphql, rest } → http → services → { providers, store } → formats → fast → lib, and packages → { providers, formats, fast, lib }. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { findBreaches, readSources } from "../support/boundaries.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

describe("the project", () => {
  it("keeps every rule", () => {
    const folders = ["src", "packages", "dashboard"].filter((folder) => existsSync(join(root, folder)));

    const sources = readSources(root, folders);

    expect(sources.has("src/main.ts")).toBe(true);
    expect(sources.has("packages/sandbox/src/sandbox-worker.ts")).toBe(true);
    expect(findBreaches(sources)).toEqual([]);
  });
});

describe("the checker", () => {
  const breachesOf = (file: string, text: string) => findBreaches(new Map([[file, text]]));

  it.each([
    ["src/rest/usage.ts", 'import { builder } from "../graphql/builder.js";', "rest must not import graphql"],
    ["src/graphql/types/usage.ts", 'import { route } from "../../rest/route.js";', "graphql must not import rest"],
    ["src/graphql/types/usage.ts", 'import type { Database } from "../../store/database.js";', "graphql must not import store"],
    ["src/rest/usage.ts", 'import {\n  type Provider,\n  other,\n} from "../providers/provider.js";', "rest must not import providers"],
    [
      "src/providers/sandbox/text.ts",
      'import { draw } from "../../../packages/sandbox/src/draw.js";',
      "providers must not import packages",
    ],
    ["packages/sandbox/src/draw.ts", 'import { Usage } from "../../../src/services/usage/usage.js";', "packages must not import services"],
    ["src/services/usage/usage.ts", 'import { route } from "../../rest/route.js";', "services must not import rest"],
    ["src/services/usage/usage.ts", 'import { explain } from "../../http/errors.js";', "services must not import http"],
    ["src/http/errors.ts", 'import { route } from "../rest/route.js";', "http must not import rest"],
    ["src/http/context.ts", 'import type { GraphQLContext } from "../graphql/context.js";', "http must not import graphql"],
    ["src/http/errors.ts", 'import { GraphQLError } from "graphql";', "http must not import the package graphql"],
    ["src/services/usage/usage.ts", 'const { schema } = await import("../../graphql/schema.js");', "services must not import graphql"],
    ["src/providers/openai/chat.ts", 'import { Credits } from "../../services/credits/credits.js";', "providers must not import services"],
    ["src/providers/openai/chat.ts", 'import { openDatabase } from "../../store/database.js";', "providers must not import store"],
    ["src/store/ledger.ts", 'import { Credits } from "../services/credits/credits.js";', "store must not import services"],
    ["src/formats/openai-chat/stream.ts", 'import { x } from "../../providers/http.js";', "formats must not import providers"],
    ["src/formats/openai-chat/stream.ts", 'import { x } from "../../services/usage/usage.js";', "formats must not import services"],
    ["src/lib/money.ts", 'import { hasFastPaths } from "../fast/fast-paths.js";', "lib must not import fast"],
    ["src/fast/pull.ts", 'import { PAGE_SIZE_MAX } from "../limits.js";', "fast must not import common"],
    ["src/lib/money.ts", 'import { notFound } from "../errors.js";', "lib must not import common"],
    ["src/services/usage/usage.ts", 'import { parseConfig } from "../../config/config.js";', "services must not import config"],
    ["src/main.ts", 'import { route } from "./rest/route.js";', "main must not import rest"],
    ["src/errors.ts", 'import { Usage } from "./services/usage/usage.js";', "common must not import services"],
    ["src/rest/usage.ts", 'import "../store/database.js";', "rest must not import store"],
    ["dashboard/src/app.tsx", 'import { AppError } from "../../src/errors.js";', "dashboard must not import common"],
    ["src/services/usage/usage.ts", 'import { GraphQLError } from "graphql";', "services must not import the package graphql"],
    ["src/services/usage/usage.ts", 'import { createYoga } from "graphql-yoga";', "services must not import the package graphql-yoga"],
    ["src/services/usage/usage.ts", 'import type { Request } from "express";', "services must not import the package express"],
    ["src/rest/usage.ts", 'import { PrismaClient } from "@prisma/client";', "rest must not import the package @prisma/client"],
    [
      "src/services/generation/generations.ts",
      'import type { ModelHealth } from "../community-models/health.js";',
      "generation must not import community-models, which stands after it",
    ],
    ["src/services/sums/sum.ts", "export const a = 1;", "sums is not in the list of domains"],
    ["src/usage.ts", "export const a = 1;", "is in no layer of the architecture"],
    ["src/services/usage.ts", "export const a = 1;", "lies in no folder"],
    ["src/limits-usage.ts", "export const a = 1;", "is in no layer of the architecture"],
    ["src/helpers/text.ts", "export const a = 1;", "is in no layer of the architecture"],
    ["src/rest/all.ts", 'export * from "./usage.js";', "re-exports"],
    ["src/rest/all.ts", 'export { usage } from "./usage.js";', "re-exports"],
    ["src/rest/all.ts", 'export type {\n  Usage,\n} from "./usage.js";', "re-exports"],
    ["src/services/usage/usage.ts", "const port = process.env.PORT;", "reads the environment"],
    ["src/services/usage/usage.ts", 'const port = process["env"].PORT;', "reads the environment"],
    ["src/services/usage/usage.ts", "const { env } = process;", "reads the environment"],
    ["src/services/usage/usage.ts", 'import { env } from "node:process";', "reads the environment"],
    ["src/services/usage/usage.ts", "export const a = 1;\n".repeat(401), "has 401 lines"],
  ])("finds a breach in %s: $2", (file, text, breach) => {
    expect(breachesOf(file, text)).toEqual([expect.stringContaining(`${file}: ${breach}`)]);
  });

  it.each([
    ["src/main.ts", 'import { createApp } from "./app.js";\nimport { parseConfig } from "./config/config.js";\nparseConfig(process.env);'],
    [
      "src/app.ts",
      'import { openDatabase } from "./store/database.js";\nimport { route } from "./rest/route.js";\nimport express from "express";',
    ],
    ["src/config/config.ts", 'import { parsePicocredits } from "../lib/money.js";\nprocess.env.PORT;'],
    [
      "src/graphql/types/usage.ts",
      'import { builder } from "../builder.js";\nimport { notFound } from "../../errors.js";\nimport { GraphQLError } from "graphql";',
    ],
    [
      "src/services/usage/usage.ts",
      'import { Credits } from "../credits/credits.js";\nimport { openDatabase } from "../../store/database.js";\nimport { sum } from "../../lib/sum.js";',
    ],
    ["src/rest/route.ts", 'import { Exchange } from "../http/exchange.js";'],
    ["src/graphql/server.ts", 'import { Exchange } from "../http/exchange.js";\nimport type { Request } from "express";'],
    ["src/store/ledger.ts", 'import pg from "pg";\nimport { PAGE_SIZE_MAX } from "../limits.js";'],
    ["src/services/usage/usage.ts", "export const a = 1;\n".repeat(400)],
    ["src/services/usage/usage.ts", "export { first, second };\nexport const environment = 'process.environment';"],
  ])("accepts a correct import in %s (%#)", (file, text) => {
    expect(breachesOf(file, text)).toEqual([]);
  });

  it("finds circles of imports, types included", () => {
    const circle = new Map([
      ["src/services/usage/a.ts", 'import { b } from "./b.js";'],
      ["src/services/usage/b.ts", 'import { c } from "./c.js";'],
      ["src/services/usage/c.ts", 'import { a } from "./a.js";'],
    ]);
    const types = new Map([
      ["src/services/usage/a.ts", 'import { b } from "./b.js";'],
      ["src/services/usage/b.ts", 'import type { A } from "./a.js";'],
    ]);

    expect(findBreaches(circle)).toEqual([
      "src/services/usage/a.ts: imports itself in a circle: src/services/usage/a.ts -> src/services/usage/b.ts -> src/services/usage/c.ts -> src/services/usage/a.ts",
    ]);
    expect(findBreaches(types)).toEqual([
      "src/services/usage/a.ts: imports itself in a circle: src/services/usage/a.ts -> src/services/usage/b.ts -> src/services/usage/a.ts",
    ]);
  });
});
