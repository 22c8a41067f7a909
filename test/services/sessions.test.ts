import { afterAll, beforeAll, expect, it } from "vitest";
import { createClient } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { signedIn, signIn, signUp } from "../support/sign-in.js";

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

it("opens a session with which account routes answer", async () => {
  const person = await signUp(app);
  const again = await signIn(app, person);

  const answer = await createClient(app.baseUrl, null).get("/account/keys", { headers: signedIn(again) });

  expect(answer.json()).toEqual({ data: [] });
  expect(again.sessionId).not.toBe(person.sessionId);
});
