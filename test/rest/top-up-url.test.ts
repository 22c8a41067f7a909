/** The 402 names the way to more credits (docs/spec/top-ups.md#errors): every operation that generates, and every place that makes one. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CREDIT, createPayer, type Payer } from "../e2e/money.js";
import { readSources } from "../support/boundaries.js";
import { createOperationsApp, modelOf, type OperationsApp } from "../support/operation-upstreams.js";
import { OPERATIONS, type Operation } from "../support/operations.js";

let app: OperationsApp;
let payer: Payer;

beforeAll(async () => {
  app = await createOperationsApp();
  payer = await createPayer(app, { pack: 1n });
});
afterAll(() => app.close());

const ask = (operation: Operation, { key } = payer) =>
  operation.ask({ baseUrl: app.baseUrl, wsUrl: app.wsUrl, key }, { model: modelOf(operation.kind) }, {});

describe("an account without credits", () => {
  it.each(OPERATIONS.map((operation) => [operation.name, operation] as const))("reads where to buy them: %s", async (_name, operation) => {
    const outcome = await ask(operation);

    expect(outcome.code).toBe("INSUFFICIENT_BALANCE");
    expect(outcome.text).toMatch(/"topUpUrl":"http[^"]*\/dashboard\/credits"/);
    expect(outcome.text).toMatch(/"required":"[0-9.]+"/);
    expect(outcome.text).toContain('"available":"0.000000001"');
  });
});

describe("a key without budget", () => {
  it.each(OPERATIONS.map((operation) => [operation.name, operation] as const))("reads to use another one: %s", async (_name, operation) => {
    const outcome = await ask(operation, await createPayer(app, { pack: CREDIT, budget: 1n }));

    expect(outcome.code).toBe("KEY_BUDGET_EXHAUSTED");
    expect(outcome.text).toContain('"bound":"key_budget"');
    expect(outcome.text).toContain("use a key with a larger budget");
    expect(outcome.text).toMatch(/"required":"[0-9.]+"/);
    expect(outcome.text).toContain('"available":"0.000000001"');
  });
});

it("is made where the amounts are known, and nowhere else", () => {
  const made = [...readSources(fileURLToPath(new URL("../../", import.meta.url)), ["src"])].filter(([, text]) =>
    /AppError\([^)]*"(?:INSUFFICIENT_BALANCE|KEY_BUDGET_EXHAUSTED|MAX_COST_EXCEEDED)"|code: "(?:INSUFFICIENT_BALANCE|KEY_BUDGET_EXHAUSTED|MAX_COST_EXCEEDED)"/.test(
      text,
    ),
  );

  expect(made.map(([file]) => file).sort()).toEqual([
    "src/services/credits/refusals.ts",
    "src/services/credits/spending-budgets.ts",
    "src/services/usage-limits/refusals.ts",
  ]);
});
