/** The gateway's own MCP server, put together. */
import type { Addresses } from "../../lib/base-url.js";
import type { Events } from "../../store/events.js";
import type { Catalog } from "../catalog/catalog.js";
import type { MediaLinks } from "../files/media-links.js";
import type { TextGeneration } from "../generation/chat/text.js";
import type { Generations } from "../generation/generations.js";
import type { Images } from "../generation/media/images.js";
import type { Speech } from "../generation/media/speech.js";
import type { Videos } from "../generation/media/videos.js";
import { McpGateway } from "./gateway.js";
import { ToolCalls } from "./tool-calls.js";
import { createImageTool } from "./tools/generate-image.js";
import { createSpeechTool } from "./tools/generate-speech.js";
import { createTextTool } from "./tools/generate-text.js";
import { createVideoTool } from "./tools/generate-video.js";
import { createModelsTool } from "./tools/list-models.js";
import type { GatewayTool } from "./tools/tool.js";

export interface McpGatewayDependencies {
  readonly catalog: Catalog;
  readonly generations: Generations;
  readonly text: TextGeneration;
  readonly images: Images;
  readonly speech: Speech;
  readonly videos: Videos;
  readonly mediaLinks: MediaLinks;
  readonly events: Events;
  readonly addresses: () => Addresses;
}

export function createMcpGateway(deps: McpGatewayDependencies): McpGateway {
  const { catalog, generations, text, images, speech, videos, mediaLinks, events, addresses } = deps;
  const tools = [
    createTextTool(text),
    createImageTool(images, mediaLinks),
    createSpeechTool(speech, mediaLinks),
    createVideoTool(videos, generations, mediaLinks),
    createModelsTool(catalog),
  ] as readonly GatewayTool[];
  const ownUrls = () => [addresses().baseUrl, addresses().authUrl];
  return new McpGateway({ tools, calls: new ToolCalls(events), ownUrls });
}
