import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/lib/clock.js";
import { findSandboxPackages } from "../../../src/providers/sandbox/media/installed.js";
import { loadCatalog } from "../../../src/services/catalog/catalog.js";
import { missingSandboxModels, SANDBOX_SOURCE, sandboxSource } from "../../../src/services/catalog/sandbox.js";

const idsOf = (packages: { readonly hasMedia: boolean; readonly hasVoice: boolean }) => sandboxSource(packages).models.map(({ id }) => id);

describe("the sandbox's models", () => {
  it("are all there with the packages that npm ci installs", () => {
    expect(findSandboxPackages()).toEqual({ hasMedia: true, hasVoice: true });
    expect(idsOf({ hasMedia: true, hasVoice: true })).toEqual(SANDBOX_SOURCE.models.map(({ id }) => id));
    expect(missingSandboxModels({ hasMedia: true, hasVoice: true })).toEqual([]);
  });

  it("lack speech without the voice", () => {
    expect(missingSandboxModels({ hasMedia: true, hasVoice: false })).toEqual(["sandbox/speech", "sandbox/speech-paid"]);
    expect(idsOf({ hasMedia: true, hasVoice: false })).toContain("sandbox/music");
    expect(idsOf({ hasMedia: true, hasVoice: false })).not.toContain("sandbox/speech");
  });

  it("are those of the packages that a start has found", async () => {
    const settings = { modelsFile: null, hasSandboxModels: true, vendors: {}, readEnv: () => null };
    const catalog = await loadCatalog(settings, systemClock, { hasMedia: true, hasVoice: false });

    expect(catalog.find("sandbox/music")?.id).toBe("sandbox/music");
    expect(catalog.find("sandbox/speech")).toBeNull();
  });

  it("answer text, vectors and moderations without the package of media", () => {
    expect(idsOf({ hasMedia: false, hasVoice: false })).toEqual([
      "sandbox/text",
      "sandbox/text-paid",
      "sandbox/realtime",
      "sandbox/realtime-paid",
      "sandbox/embedding",
      "sandbox/embedding-paid",
      "sandbox/rerank",
      "sandbox/rerank-paid",
      "sandbox/moderation",
    ]);
  });
});
