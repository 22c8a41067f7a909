/** Every operation that generates, by an account without credits: the 402 names the way to more (docs/spec/top-ups.md#errors). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPayer, type Payer } from "../e2e/money.js";
import { createOperationsApp, modelOf, type OperationsApp } from "../support/operation-upstreams.js";
import { OPERATIONS, type Operation } from "../support/operations.js";

let app: OperationsApp;
let payer: Payer;

beforeAll(async () => {
  app = await createOperationsApp();
  payer = await createPayer(app, { pack: 1n });
});
afterAll(() => app.close());

const ask = (operation: Operation) =>
  operation.ask({ baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: payer.key }, { model: modelOf(operation.kind) }, {});

describe("an account without credits", () => {
  it.each(OPERATIONS.map((operation) => [operation.name, operation] as const))("reads where to buy them: %s", async (_name, operation) => {
    const outcome = await ask(operation);

    expect(outcome.code).toBe("INSUFFICIENT_BALANCE");
    expect(outcome.text).toMatch(/"topUpUrl":"http[^"]*\/dashboard\/credits"/);
    expect(outcome.text).toMatch(/"required":"[0-9.]+"/);
    expect(outcome.text).toContain('"available":"0.000000001"');
  });
});
