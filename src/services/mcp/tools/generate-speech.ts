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
  input: shape.input.describe("The text to speak."),
  model: model(shape.model),
  voice: optional(shape.voice, "One of the model's voices, as in list_models."),
  response_format: optional(shape.response_format, "The audio format. Defaults to mp3."),
  speed: optional(shape.speed, "The speed. 1 is normal."),
  instructions: optional(shape.instructions, "Instructions for the delivery."),
  safe: optional(shape.safe, "Safety checks of the text: true for the default ones, or a comma-separated list."),
  delivery: z.enum(DELIVERIES).optional().describe("inline: in the result, when it fits; url: as a link that works for 14 days."),
});

export function createSpeechTool(
  speech: Pick<Speech, "create">,
  mediaLinks: Pick<MediaLinks, "publish">,
): GatewayTool<z.output<typeof input>> {
  return {
    name: "generate_speech",
    title: "Generate speech",
    description: "Generates speech from text.",
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
