/** Registered models in the catalog's GraphQL face, and their health as their owners watch it. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { PENDING_CHANGE_MS } from "../../src/services/community-models/limits.js";
import {
  type ChatCompletionInput,
  ChatDocument,
  CreateApiKeyDocument,
  HealthOfModelsDocument,
  type HealthOfModelsQueryVariables,
  ModelFallbacksDocument,
  ModelHealthChangedDocument,
  type ModelHealthChangedSubscriptionVariables,
  RegisteredModelDocument,
  StreamChatDocument,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, deleteModel, healthOf, type Member, registerModel } from "../support/community-models.js";
import { errorReply } from "../support/upstream-replies.js";
import { codes, execute, ok, subscribeSse, TRANSPORTS } from "./client.js";

let app: TestApp;
let owner: Member;
let other: Member;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } });
  [owner, other] = await Promise.all([createMember(app), createMember(app)]);
});
afterAll(() => app.close());

const greeting = (model: string): ChatCompletionInput => ({ model, messages: [{ role: "USER", content: "Hi" }] });
const call = (model: string) => execute({ ...app, key: other.key }, ChatDocument, { input: greeting(model) });

describe.each(TRANSPORTS)("modelHealthChanged over %s", (_name, subscribe) => {
  it("reports each model that others called to its owner, by the selected fields", async () => {
    const [watched, beside] = [
      await registerModel(app, owner, { visibility: "public" }),
      await registerModel(app, owner, { visibility: "public" }),
    ];
    const [all, one] = [{}, { id: watched.id }].map((variables) =>
      subscribe({ ...app, key: owner.key }, ModelHealthChangedDocument, variables),
    );
    const [nextOfAll, nextOfOne] = [all?.next(), one?.next()];
    let isTold = false;
    void nextOfOne?.then(() => {
      isTold = true;
    });
    // A subscription is not there before its first word; calls go on until it has spoken.
    let failed = 0;
    while (!isTold) {
      app.upstream.replyNext(errorReply(500));
      expect(codes(await call(watched.modelId))).toEqual(["UPSTREAM_ERROR"]);
      failed += 1;
      await healthOf(app).flush();
    }

    const told = (await nextOfOne)?.data?.modelHealthChanged;
    expect(told).toMatchObject({
      ...{ communityModelId: watched.id, modelId: watched.modelId },
      model: { id: toGlobalId("Model", watched.modelId), restId: watched.modelId, health: { successRate: 0 } },
    });
    expect(told?.model?.health.requests).toBeLessThanOrEqual(failed);
    expect(await nextOfAll).toMatchObject({ data: { modelHealthChanged: { communityModelId: watched.id } } });
    await call(beside.modelId);
    await healthOf(app).flush();
    let later = (await all?.next())?.data?.modelHealthChanged;
    while (later?.communityModelId === watched.id) later = (await all?.next())?.data?.modelHealthChanged;
    expect(later).toMatchObject({
      ...{ communityModelId: beside.id, modelId: beside.modelId },
      model: { health: { status: "UNKNOWN", successRate: 1, requests: 1 } },
    });
    all?.leave();
    one?.leave();
  });
});

describe("modelHealthChanged", () => {
  it("is refused to callers who may not manage keys, and for other accounts' models", async () => {
    const { id } = await registerModel(app, owner, { visibility: "public" });
    const gone = await registerModel(app, other);
    await deleteModel(app, other, gone.id);
    const plain = ok(await execute(app, CreateApiKeyDocument, { input: { name: "k" } })).createApiKey.key;
    const refusal = async (key: string | null, variables: ModelHealthChangedSubscriptionVariables) => {
      const live = subscribeSse({ ...app, key }, ModelHealthChangedDocument, variables);
      const answer = await live.next();
      live.leave();
      return codes(answer ?? {});
    };

    expect(await refusal(null, {})).toEqual(["UNAUTHORIZED"]);
    expect(await refusal(plain, {})).toEqual(["FORBIDDEN"]);
    for (const unknown of [id, gone.id, "not-an-id"]) expect(await refusal(other.key, { id: unknown })).toEqual(["NOT_FOUND"]);
  });
});

describe("chatCompletion", () => {
  it("streams a registered model's answer at its owner's prices", async () => {
    const prices = { promptTextPrice: 2_000_000n, completionTextPrice: 5_000_000n };
    const { modelId } = await registerModel(app, owner, { visibility: "public", ...prices });
    const input = { ...greeting(modelId), maxTokens: 100 };

    const answers = await subscribeSse({ ...app, key: other.key }, StreamChatDocument, { input }).rest();

    const events = answers.map((answer) => ok(answer).chatCompletion);
    const said = events.map((event) => ("content" in event ? event.content : ""));
    expect(said.join("")).toBe(app.upstream.answer.pieces.join(""));
    expect(events.at(-1)).toMatchObject({ receipt: { modelUsedId: modelId, cost: "0.00004" } });
  });
});

describe("models", () => {
  it("show scheduled changes, and each caller the registered ones that they may call", async () => {
    const pendingEffectiveAt = new Date(Date.now() + PENDING_CHANGE_MS);
    const { modelId } = await registerModel(app, owner, {
      ...{ promptTextPrice: 2_000_000n, perUserRpm: 0.5, title: "Scheduled", pending: { visibility: "public" }, pendingEffectiveAt },
    });

    const shown = await execute({ ...app, key: owner.key }, RegisteredModelDocument, { id: modelId });

    expect(shown.data).toEqual({
      model: {
        ...{ restId: modelId, isCommunity: true, isPrivate: true, ownerHandle: owner.handle, perUserRpm: 0.5 },
        health: { status: "UNKNOWN", successRate: null, requests: 0 },
        pendingChange: {
          ...{ effectiveAt: pendingEffectiveAt.toISOString(), visibility: "PUBLIC", isPaidOnly: null, imagePricing: null },
          pricing: { inputTextTokens: "0.000002", outputTextTokens: "0" },
        },
      },
      models: { nodes: [{ restId: modelId }] },
    });
    const hidden = await execute({ ...app, key: other.key }, RegisteredModelDocument, { id: modelId });
    expect(codes(hidden)).toEqual(["NOT_FOUND"]);
    expect(hidden.data).toEqual({ model: null, models: { nodes: [] } });
  });

  it("name only fallbacks that the caller may see", async () => {
    const [open, hidden] = [await registerModel(app, owner, { visibility: "public" }), await registerModel(app, owner)];
    const gone = `community/${owner.handle}/gone`;
    const { modelId } = await registerModel(app, owner, { visibility: "public", fallbacks: [hidden.modelId, open.modelId, gone] });
    const fallbacks = async (key: string | null) => {
      const { model } = ok(await execute({ ...app, key }, ModelFallbacksDocument, { id: modelId }));
      expect(model.fallbacks.map(({ restId }) => restId)).toEqual(model.fallbackIds);
      return model.fallbackIds;
    };

    expect(await fallbacks(owner.key)).toEqual([hidden.modelId, open.modelId]);
    expect(await fallbacks(other.key)).toEqual([open.modelId]);
    expect(await fallbacks(null)).toEqual([open.modelId]);
  });

  it("leave out failing models, unless all are requested", async () => {
    const { modelId } = await registerModel(app, owner, { visibility: "public", modality: "embedding" });
    const row = app.services.catalog.findFor({ kind: "anonymous" }, modelId);
    if (!row) throw new Error("not there");
    const caller = { kind: "session", accountId: other.accountId, isOperator: false, sessionId: "" } as const;
    for (let failed = 0; failed < 10; failed += 1) healthOf(app).failed(caller, row);
    await healthOf(app).flush();
    await healthOf(app).upToDate();

    const all = ["HEALTHY", "UNKNOWN", "UNRELIABLE"] as const;
    const list = async (filter: HealthOfModelsQueryVariables["filter"]) =>
      ok(await execute({ ...app, key: null }, HealthOfModelsDocument, { filter: { modalities: ["EMBEDDING"], ...filter } })).models.nodes;
    const entry = { restId: modelId, health: { status: "UNRELIABLE" } };
    expect(await list({ isCommunity: true })).toEqual([]);
    expect(await list({ isCommunity: true, healthStatuses: all })).toEqual([entry]);
    expect(await list({ healthStatuses: ["UNRELIABLE"] })).toEqual([entry]);
    expect(await list({ healthStatuses: all })).toContainEqual(entry);
    expect(await list({ isCommunity: false, healthStatuses: all })).not.toContainEqual(entry);
  });
});
