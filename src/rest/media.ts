/**
 * The media host (Spec 4.8; decisions "Media"): uploads need a key, reading needs none. Both variants share its addresses; what only
 * variant B has is in media-objects.ts.
 */
import type { OutgoingHttpHeaders } from "node:http";
import * as z from "zod";
import type { RequestContext } from "../context.js";
import { invalidInput } from "../errors.js";
import { MEDIA_NAME_CHARS_MAX, MEDIA_UPLOAD_BYTES_MAX } from "../limits-disk.js";
import { parseInput, storableText } from "../services/input.js";
import type { MediaUpload, StoredMedia } from "../services/media-links.js";
import { createUploadInput } from "../services/media-objects-input.js";
import { isInline } from "../services/media-types.js";
import type { Services } from "../services/services.js";
import { isJson, type JsonObject, readBytesBody, readJsonBody } from "./body.js";
import type { Endpoint } from "./endpoint.js";
import type { Exchange } from "./exchange.js";
import { addMediaObjectRoutes, openHandler, sendMediaObject } from "./media-objects.js";
import type { Route } from "./route.js";
import { sendStoredFile } from "./stored-file.js";
import { isForm, readForm } from "./uploads.js";

/** Spec 9: of variant B, whose host is the same (decisions "Media"). */
const VERSION = "2.0.0";
/** Beside the file: the boundaries and headers of a form, the other fields of a JSON body. */
const OVERHEAD_BYTES = 64 * 1024;
const JSON_BYTES_MAX = Math.ceil(MEDIA_UPLOAD_BYTES_MAX / 3) * 4 + OVERHEAD_BYTES;
const FORM_RULES = {
  files: { file: { countMax: 1 } },
  fileBytesMax: MEDIA_UPLOAD_BYTES_MAX,
  bytesMax: MEDIA_UPLOAD_BYTES_MAX + OVERHEAD_BYTES,
};
const uploadInput = z.strictObject({
  data: z.string(),
  contentType: storableText.max(MEDIA_NAME_CHARS_MAX).optional(),
  name: storableText.min(1).max(MEDIA_NAME_CHARS_MAX).optional(),
});

type MediaServices = Pick<Services, "media" | "mediaLinks" | "mediaObjects">;

export function addMediaRoutes(route: Route, endpoint: Endpoint, services: MediaServices): void {
  const { media, mediaLinks, mediaObjects } = services;
  route("/", {
    GET: (exchange) => exchange.sendJson({ name: "Sluice media", version: VERSION }),
  });
  route("/upload", {
    POST: endpoint({
      handler: async (ctx: RequestContext, { exchange }) => {
        const json = isJson(exchange.req) ? await readJsonBody(exchange.req, JSON_BYTES_MAX) : null;
        if (json && !Object.hasOwn(json, "data")) return mediaObjects.createUpload(ctx, parseInput(createUploadInput, json));
        const { id, url, contentType, size, duplicate } = await mediaLinks.upload(ctx, await readUpload(exchange, json));
        return { id, url, contentType, size, duplicate };
      },
    }),
  });
  addMediaObjectRoutes(route, endpoint, services);
  route("/:media", {
    GET: openHandler(async (exchange) => {
      const item = await media.get(exchange.parameter("media"));
      await (item.kind === "file" ? sendMedia(exchange, item.file) : sendMediaObject(exchange, item.object, mediaObjects));
    }),
  });
}

async function readUpload({ req }: Exchange, json: JsonObject | null): Promise<MediaUpload> {
  if (isForm(req)) {
    const [file] = (await readForm(req, FORM_RULES)).files.file ?? [];
    if (!file) throw invalidInput("The form has no file.", "file");
    return { bytes: file.bytes, field: "file", contentType: file.contentType || null, name: file.name || null };
  }
  if (json) {
    const { data, contentType, name } = parseInput(uploadInput, json);
    const bytes = Buffer.from(data, "base64");
    if (bytes.toString("base64") !== data) throw invalidInput("The data is not base64 with its padding.", "data");
    return { bytes, field: "data", contentType: contentType ?? null, name: name ?? null };
  }
  const bytes = await readBytesBody(req, MEDIA_UPLOAD_BYTES_MAX);
  return { bytes, field: null, contentType: req.headers["content-type"] ?? null, name: null };
}

async function sendMedia(exchange: Exchange, media: StoredMedia): Promise<void> {
  await sendStoredFile(exchange, { etag: `"${media.sha256}"`, sizeBytes: media.sizeBytes, open: media.open }, toHeaders(exchange, media));
}

/** What a stranger uploaded is shown to a browser as nothing that it would run (reliability 9). */
function toHeaders({ res }: Exchange, { id, contentType, name }: StoredMedia): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {
    "Content-Type": contentType.startsWith("text/") ? `${contentType}; charset=utf-8` : contentType,
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Hash": id,
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "cross-origin",
  };
  if (isInline(contentType)) return headers;
  // Express knows how names are written that are not ASCII.
  res.attachment(name ?? id);
  return { ...headers, "Content-Disposition": res.getHeader("Content-Disposition") };
}
