import type { Catalog } from "../../catalog/catalog.js";
import type { MediaLinks } from "../../files/media-links.js";
import type { TextGeneration } from "../../generation/chat/text.js";
import type { Generations } from "../../generation/generations.js";
import type { Images } from "../../generation/media/images.js";
import type { Speech } from "../../generation/media/speech.js";
import type { Videos } from "../../generation/media/videos.js";
import { createImageTool } from "./generate-image.js";
import { createSpeechTool } from "./generate-speech.js";
import { createTextTool } from "./generate-text.js";
import { createVideoTool } from "./generate-video.js";
import { createModelsTool } from "./list-models.js";
import type { GatewayTool } from "./tool.js";

export interface ToolDependencies {
  readonly catalog: Catalog;
  readonly generations: Generations;
  readonly text: TextGeneration;
  readonly images: Images;
  readonly speech: Speech;
  readonly videos: Videos;
  readonly mediaLinks: MediaLinks;
}

export function createTools({ catalog, generations, text, images, speech, videos, mediaLinks }: ToolDependencies): readonly GatewayTool[] {
  return [
    createTextTool(text),
    createImageTool(images),
    createSpeechTool(speech, mediaLinks),
    createVideoTool(videos, generations, mediaLinks),
    createModelsTool(catalog),
  ] as readonly GatewayTool[];
}
