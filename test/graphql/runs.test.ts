/** Runs in the graph: the tree of a run, live. */
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  ApproveRunDocument,
  CreateRunDocument,
  type CreateRunInput,
  EndRunDocument,
  MyRunDocument,
  MyRunsDocument,
  RunChangedDocument,
  type RunChangedSubscription,
  UsageSummaryOfRunDocument,
} from "../operations/generated/graphql.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { json } from "../support/upstream-replies.js";
import { codes, execute, ok, subscribeSse, type Target } from "./client.js";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
  // One credit for each output token.
  app.upstream.replyAlways(json(chatCompletion({ usage: wireUsage(1, 1) })));
});
afterAll(() => app.close());

const createRun = async (input: CreateRunInput, target: Target = app) => ok(await execute(target, CreateRunDocument, { input })).createRun;

async function spend(key: string): Promise<number> {
  const body = JSON.stringify({ model: "acme/dear", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return (await fetch(`${app.baseUrl}/v1/chat/completions`, { method: "POST", headers, body })).status;
}

type Change = RunChangedSubscription["runChanged"];

it("shows a run and all below it as it changes, until it is ended", async () => {
  const top = await createRun({ maxCost: "3", ttl: 60, label: "Task", onLimit: "ASK" });
  const { restId: id } = top.run;
  const live = subscribeSse(app, RunChangedDocument, { id });
  const until = async (isThere: (run: Change) => boolean) => {
    for (;;) {
      const { runChanged } = ok(await live.next());
      if (isThere(runChanged)) return runChanged;
    }
  };
  expect(await until(() => true)).toMatchObject({ label: "Task", status: "OPEN", maxCost: "3", spent: "0", onLimit: "ASK", below: [] });

  const below = await createRun({ maxCost: "2" }, { ...app, key: top.key });
  expect(below.run).toMatchObject({ parentId: id, onLimit: "REFUSE" });
  await until((run) => run.below?.[0]?.restId === below.run.restId);
  expect(await spend(below.key)).toBe(200);
  await until((run) => run.spent === "1" && run.below?.[0]?.spent === "1");
  expect([await spend(top.key), await spend(top.key)]).toEqual([200, 200]);
  const waiting = spend(top.key);
  await until(({ asked }) => asked === "1");
  const approved = ok(await execute(app, ApproveRunDocument, { input: { id: top.run.id, amount: "1" } })).approveRun.run;
  expect(approved).toMatchObject({ maxCost: "4", asked: null });
  expect(await waiting).toBe(200);
  await until(({ spent, left }) => spent === "4" && left === "0");
  ok(await execute(app, EndRunDocument, { input: { id } }));
  expect(await until(({ status }) => status === "ENDED")).toMatchObject({ below: [{ status: "ENDED", spent: "1" }] });
  live.leave();

  const groups = ok(await execute(app, UsageSummaryOfRunDocument, { id: top.run.id })).me.usageSummary;
  expect(groups).toEqual([{ requests: 4, cost: "4" }]);
});

it("is hidden from other accounts, and shown to its own key", async () => {
  const { run, key } = await createRun({ maxCost: "1" });
  const stranger = { ...app, key: (await createStranger(app)).key };

  expect(codes(await execute(stranger, MyRunDocument, { id: run.id }))).toEqual(["NOT_FOUND"]);
  expect(codes(await execute(stranger, EndRunDocument, { input: { id: run.id } }))).toEqual(["NOT_FOUND"]);
  expect(codes([...(await subscribeSse(stranger, RunChangedDocument, { id: run.id }).rest())][0] as never)).toEqual(["NOT_FOUND"]);
  expect(ok(await execute({ ...app, key }, MyRunDocument, { id: run.id })).run).toMatchObject({ id: run.id, below: [] });
  expect(ok(await execute({ ...app, key }, MyRunsDocument)).me.runs?.nodes).toMatchObject([{ id: run.id }]);
  expect(codes(await execute({ ...app, key }, ApproveRunDocument, { input: { id: run.id, amount: "1" } }))).toEqual(["FORBIDDEN"]);
});

it("adds an approval with an idempotency key once", async () => {
  const { run } = await createRun({ maxCost: "1" });
  const approve = (amount: string) => execute(app, ApproveRunDocument, { input: { id: run.id, amount, idempotencyKey: "once" } });

  const answers = [await approve("1"), await approve("1.0")].map((each) => ok(each).approveRun.run.maxCost);

  expect(answers).toEqual(["2", "2"]);
  expect(codes(await approve("2"))).toEqual(["CONFLICT"]);
});
