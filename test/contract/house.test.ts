/** What `npm run house` measures, on sources that are small enough to count by hand. */
import { createVirtualFileSystem } from "typescript/unstable/fs";
import { describe, expect, it } from "vitest";
import { accountReadsIn } from "../../scripts/house/account-reads.js";
import { measureShape } from "../../scripts/house/shape.js";
import { followContext } from "../../scripts/house/walk.js";

describe("the shape of the sources", () => {
  const long = "\n".repeat(39);
  const shape = measureShape(
    new Map([
      ["src/main.ts", `${long}import { App } from "./app.js";`],
      ["src/app.ts", 'import { Chat } from "./services/chat/chat.js";'],
      ["src/services/services.ts", `${long}import type { Chat } from "./chat/chat.js";`],
      ["src/services/chat/chat.ts", `import type { Owner } from "../owners/owner.js";\ncredits.open(1);${long}credits.open(2);`],
      ["src/services/owners/owner.ts", 'import type { Name } from "./name.js";'],
      ["src/services/owners/name.ts", 'import type { Word } from "../chat/word.js";\nconst ctx: RequestContext = { caller };'],
      ["src/services/chat/word.ts", "charge?.settle(0n);"],
      ["src/services/credits/credits.ts", "charge.release();"],
      ["src/errors.ts", 'import { a } from "./a.js";\nexport const STATUSES: Record<ErrorCode, number> = {};'],
      ["src/a.ts", 'import type { E } from "./errors.js";'],
    ]),
  );

  it("counts files, the small ones and those of them with one importer", () => {
    expect(shape).toMatchObject({ files: 10, small: 7, smallWithOneImporter: 6, inServices: 1, inSource: 4 });
  });

  it("finds circles of files and of domains, types included", () => {
    expect(shape.fileCircles).toEqual([["src/a.ts", "src/errors.ts"]]);
    expect(shape.domainCircles).toEqual([["chat", "owners"]]);
  });

  it("finds the places that charge, tables of statuses and builders of contexts", () => {
    expect(shape.chargePlaces).toEqual(["src/services/chat/chat.ts", "src/services/chat/word.ts"]);
    expect(shape.statusTables).toEqual(["src/errors.ts"]);
    expect(shape.contextBuilders).toEqual(["src/services/owners/name.ts"]);
  });
});

describe("the path of a request's context", () => {
  const files = {
    "tsconfig.json":
      '{ "compilerOptions": { "strict": true, "noLib": true, "types": [] }, "files": ["src/route.ts", "src/run.ts", "src/plan.ts", "src/log.ts"] }',
    "src/route.ts": `import { plan } from "./plan.js";
import { Run } from "./run.js";
declare function route(path: string, methods: object): void;
route("/chat", { POST: { handler: (ctx: { caller: string }, isStream: boolean) => {
  if (isStream) return plan(ctx);
  const run = new Run({ ctx });
  run.begin();
} } });`,
    "src/run.ts": `import { log } from "./log.js";
import { plan } from "./plan.js";
export class Run {
  constructor(private readonly held: { ctx: { caller: string } }) {}
  begin() {
    const planned = plan(this.held.ctx);
    log(planned);
  }
}`,
    "src/plan.ts": `import { log } from "./log.js";
export function plan(ctx: { caller: string }): object {
  log(ctx.caller);
  return { caller: ctx.caller };
}`,
    "src/log.ts": "export function log(what: unknown): void {}",
  };
  const root = "/project";
  const fs = createVirtualFileSystem(Object.fromEntries(Object.entries(files).map(([name, text]) => [`${root}/${name}`, text])));

  it("is followed through objects that hold it, and on request through objects that are made from it", () => {
    const ways = followContext({ root, path: "/chat", called: null, api: { fs } });

    expect(ways.context).toEqual(["src/route.ts", "src/plan.ts", "src/run.ts", "src/plan.ts"]);
    expect(ways.derived).toEqual(["src/route.ts", "src/plan.ts", "src/log.ts", "src/run.ts", "src/plan.ts", "src/log.ts"]);
  });

  it("leaves out functions that were not called", () => {
    const called = [{ file: "src/run.ts", line: 5 }];

    expect(followContext({ root, path: "/chat", called, api: { fs } }).derived).toEqual(["src/route.ts", "src/run.ts"]);
  });
});

describe("reads of the account", () => {
  it.each([
    ['SELECT "public"."account"."id" FROM "public"."account" WHERE "public"."account"."id" = $1', 1],
    ['SELECT "public"."account"."id" FROM "public"."account" WHERE "public"."account"."id" IN ($1,$2,$3)', 3],
    ['SELECT "public"."api_key"."id" FROM "public"."api_key" WHERE "public"."api_key"."account_id" = $1', 0],
    ["UPDATE account SET name = $1", 0],
  ])("are counted in %s", (statement, reads) => {
    expect(accountReadsIn(statement)).toBe(reads);
  });
});
