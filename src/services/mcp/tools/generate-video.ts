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
  prompt: shape.prompt.describe("What the video shows."),
  model: model(shape.model),
  duration: optional(shape.duration, "Seconds."),
  aspectRatio: optional(shape.aspectRatio, "Width to height."),
  width: optional(shape.width, "Pixels."),
  height: optional(shape.height, "Pixels."),
  audio: optional(shape.audio, "With sound, where the model can."),
  seed: optional(shape.seed, "The same seed gives the same video as far as the model can; -1 is a random one."),
  negative_prompt: optional(shape.negative_prompt, "What the video does not show."),
  image: optional(shape.image, "http or https URLs of pictures to begin from."),
  enhance: optional(shape.enhance, "Let a text model write the prompt out first."),
  safe: optional(shape.safe, "Safety features for the prompt: true for the usual ones, or their names separated by commas."),
});

export function createVideoTool(
  videos: Pick<Videos, "prepare">,
  generations: Pick<Generations, "run">,
  mediaLinks: Pick<MediaLinks, "publish">,
): GatewayTool<z.output<typeof input>> {
  return {
    name: "generate_video",
    title: "Generate a video",
    description: "Films a clip for a prompt and answers a link to it that works for 14 days. This may take minutes.",
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
