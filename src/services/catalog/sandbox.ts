/**
 * The sandbox's entries (docs/sandbox-models.md): models in the process, so that the service works without an upstream, and priced twins,
 * so that billing can be tested without a provider.
 */

import type { SandboxPackages } from "../../providers/sandbox/media/installed.js";
import type { Modality } from "./modality.js";
import type { CatalogSource, ModelDefinition, Upstream } from "./model.js";
import type { StatedPrices } from "./pricing.js";
import { SANDBOX_MEDIA_MODELS } from "./sandbox-media.js";

export const SANDBOX_UPSTREAM: Upstream = { id: "sandbox", wireFormat: "sandbox", baseUrl: "", apiKey: null, isTrusted: true };

/**
 * Picocredits per token, round and all different, so that a charge shows its kinds: credits per million tokens are 1 for a prompt (0.1
 * cached, 2 written to the cache, 3 as images, 5 as audio) and 10 for a completion (20 as reasoning, 40 as audio).
 */
const SANDBOX_TEXT_PRICES: StatedPrices = {
  promptTextPrice: 1_000_000n,
  promptCachedPrice: 100_000n,
  promptCacheWritePrice: 2_000_000n,
  promptAudioPrice: 5_000_000n,
  promptImagePrice: 3_000_000n,
  completionTextPrice: 10_000_000n,
  completionReasoningPrice: 20_000_000n,
  completionAudioPrice: 40_000_000n,
};

export const SANDBOX_SOURCE: CatalogSource = {
  origin: "sandbox",
  upstreams: [SANDBOX_UPSTREAM],
  models: [
    {
      id: "sandbox/text",
      aliases: ["sandbox"],
      title: "Sandbox text",
      description:
        "Not a language model: answers from fixed rules, in the process, free of charge. For trying out and testing integrations.",
      modality: "text",
      capabilities: ["tools", "reasoning"],
      contextLength: 128_000,
      routes: [{ upstreamId: SANDBOX_UPSTREAM.id, upstreamModel: "text" }],
      prices: {},
    },
    {
      id: "sandbox/text-paid",
      aliases: ["sandbox-paid"],
      title: "Sandbox text, priced",
      description: "The same fixed rules as sandbox/text at documented prices. For testing budgets and billing without a provider.",
      modality: "text",
      capabilities: ["tools", "reasoning"],
      contextLength: 128_000,
      routes: [{ upstreamId: SANDBOX_UPSTREAM.id, upstreamModel: "text" }],
      prices: SANDBOX_TEXT_PRICES,
    },
    {
      id: "sandbox/realtime",
      aliases: ["sandbox-realtime"],
      title: "Sandbox realtime",
      description: "Not a voice model: a realtime session that says back what it is told, in the process, free of charge.",
      modality: "realtime",
      routes: [{ upstreamId: SANDBOX_UPSTREAM.id, upstreamModel: "realtime" }],
      prices: {},
    },
    {
      id: "sandbox/realtime-paid",
      aliases: ["sandbox-realtime-paid"],
      title: "Sandbox realtime, priced",
      description: "The same echo as sandbox/realtime at documented prices. For testing budgets and billing without a provider.",
      modality: "realtime",
      routes: [{ upstreamId: SANDBOX_UPSTREAM.id, upstreamModel: "realtime" }],
      prices: SANDBOX_TEXT_PRICES,
    },
    ...SANDBOX_MEDIA_MODELS,
  ],
};

const MEDIA: ReadonlySet<Modality> = new Set(["image", "video", "speech", "music", "transcription"]);

export function sandboxSource(packages: SandboxPackages): CatalogSource {
  return { ...SANDBOX_SOURCE, models: SANDBOX_SOURCE.models.filter((model) => canRun(model, packages)) };
}

/** The ids of the models whose packages are not installed. */
export function missingSandboxModels(packages: SandboxPackages): readonly string[] {
  return SANDBOX_SOURCE.models.filter((model) => !canRun(model, packages)).map(({ id }) => id);
}

function canRun({ modality }: ModelDefinition, { hasMedia, hasVoice }: SandboxPackages): boolean {
  return (hasMedia || !MEDIA.has(modality)) && (hasVoice || modality !== "speech");
}
