/** A model of the upstream `acme` that takes one request of an account, and refuses every later one with 429. */
import { expect } from "vitest";
import type { TestApp } from "./app.js";

export const LIMITED = "acme/limited";

/** An entry of the models file. */
export const LIMITED_MODEL = {
  ...{ id: LIMITED, title: "Limited", modality: "text", upstream: "acme", upstreamModel: "limited", prices: {} },
  perUserRpm: 0.01,
};

/** Makes the one request. */
export async function useUpLimited({ baseUrl, key }: Pick<TestApp, "baseUrl" | "key">): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = JSON.stringify({ model: LIMITED, messages: [{ role: "user", content: "Hi" }] });
  expect((await fetch(`${baseUrl}/v1/chat/completions`, { method: "POST", headers, body })).status).toBe(200);
}
