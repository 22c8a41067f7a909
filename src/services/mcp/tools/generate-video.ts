/** `generate_video`: a video for a prompt. It takes minutes, reports progress, and returns a link. */
import * as z from "zod";
import type { MediaLinks } from "../../files/media-links.js";
import type { Generations } from "../../generation/generations.js";
import type { Videos } from "../../generation/media/videos.js";
import { videoInput } from "../../generation/media/videos-input.js";
import { parseInput } from "../../requests/input.js";
import { linked } from "./delivery.js";
import { type GatewayTool, model, optional, type Report, toReceiptJson } from "./tool.js";

const { shape } = videoInput;

const input = z.strictObject({
  prompt: shape.prompt.describe("A description of the video."),
  model: model(shape.model),
  duration: optional(shape.duration, "The length in seconds."),
  aspectRatio: optional(shape.aspectRatio, "The aspect ratio."),
  width: optional(shape.width, "The width in pixels."),
  height: optional(shape.height, "The height in pixels."),
  audio: optional(shape.audio, "Whether the video has sound, where the model supports it."),
  seed: optional(shape.seed, "The random seed, for repeatable videos where the model supports it. -1 draws a random one."),
  negative_prompt: optional(shape.negative_prompt, "A description of unwanted content."),
  image: optional(shape.image, "The http or https URLs of reference images."),
  enhance: optional(shape.enhance, "Whether a text model improves the prompt first."),
  safe: optional(shape.safe, "Safety checks of the prompt: true for the default ones, or a comma-separated list."),
});

export function createVideoTool(
  videos: Pick<Videos, "prepare">,
  generations: Pick<Generations, "run">,
  mediaLinks: Pick<MediaLinks, "publish">,
): GatewayTool<z.output<typeof input>> {
  return {
    name: "generate_video",
    title: "Generate a video",
    description: "Generates a video from a prompt and returns a link to it that works for 14 days. This may take minutes.",
    input,
    isReadOnly: false,
    call: async (ctx, options, report) => {
      const { plan, work, toFile } = videos.prepare(ctx, parseInput(videoInput, options), { onProgress: toReport(report) });
      let url = "";
      const { receipt } = await generations.run(ctx, plan, {
        ...work,
        // Before the charge, so that a charged video has a link.
        meter: async (made, model) => {
          const metered = await work.meter(made, model);
          url = (await mediaLinks.publish(ctx, toFile(made))).url;
          return metered;
        },
      });
      return linked([url], toReceiptJson(receipt));
    },
  };
}

/** Reports only progress beyond the last one. */
function toReport(report: Report | null): (percent: number) => void {
  let last = 0;
  return (percent) => {
    if (percent <= last) return;
    last = percent;
    report?.({ progress: percent, total: 100 });
  };
}
