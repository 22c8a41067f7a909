/** The secret under which keys are hashed, and when a generated one is stored. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { pepperOf, secretsOf } from "../../../src/services/secrets/deployment-secrets.js";
import { createTestDatabase, type TestDatabase } from "../../support/database.js";

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());

it("keeps a generated key for a new database, and none for a database that was made with another", async () => {
  const kept: string[] = [];
  const start = (key: string) => pepperOf(secretsOf(key), test.database, () => kept.push(key));

  await start("the key of the first start");
  await expect(start("generated after secrets.json was lost")).rejects.toThrow(
    /is not the one that this database's API keys were made with/,
  );
  await start("the key of the first start");

  expect(kept).toEqual(["the key of the first start", "the key of the first start"]);
});
