/** `generate_speech`: speech from text. */
import * as z from "zod";
import type { MediaFile } from "../../../providers/media.js";
import type { MediaLinks } from "../../files/media-links.js";
import { type Speech, speechInput } from "../../generation/media/speech.js";
import { MCP_INLINE_BYTES_MAX } from "../limits.js";
import { inlined, linked } from "./delivery.js";
import { DELIVERIES, type GatewayTool, model, optional, toReceiptJson } from "./tool.js";

const { shape } = speechInput;

const input = z.strictObject({
  input: shape.input.describe("The text to read out."),
  model: model(shape.model),
  voice: optional(shape.voice, "One of the model's voices, as list_models tells."),
  response_format: optional(shape.response_format, "The format of the file; mp3 if left out."),
  speed: optional(shape.speed, "1 is the voice's own."),
  instructions: optional(shape.instructions, "How to read it."),
  safe: optional(shape.safe, "Safety features for the text: true for the usual ones, or their names separated by commas."),
  delivery: z.enum(DELIVERIES).optional().describe("inline: in the result, as far as it fits; url: as a link that works for 14 days."),
});

export function createSpeechTool(
  speech: Pick<Speech, "create">,
  mediaLinks: Pick<MediaLinks, "publish">,
): GatewayTool<z.output<typeof input>> {
  return {
    name: "generate_speech",
    title: "Generate speech",
    description: "Reads a text out.",
    input,
    isReadOnly: false,
    call: async (ctx, { delivery, ...options }) => {
      let url: string | null = null;
      const publish = async (made: MediaFile) => {
        if (delivery === "url" || made.bytes.byteLength > MCP_INLINE_BYTES_MAX) url = (await mediaLinks.publish(ctx, made)).url;
      };
      const { file, receipt } = await speech.create(ctx, options, { beforeCharge: publish });
      const about = toReceiptJson(receipt);
      return url === null ? inlined("audio", [file], about) : linked([url], about);
    },
  };
}
