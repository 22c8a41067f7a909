/**
 * The media host (docs/spec/media.md): uploads need a key, reading needs none. Both variants share its addresses; what only
 * variant B has is in media-objects.ts.
 */
import type { OutgoingHttpHeaders } from "node:http";
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { invalidInput } from "../../errors.js";
import type { JsonObject } from "../../http/body.js";
import type { Exchange } from "../../http/exchange.js";
import { toDisposition } from "../../lib/content-types.js";
import { requireAccount } from "../../services/access/permissions.js";
import type { ReceivedMedia, StoredMedia } from "../../services/files/media-links.js";
import { createUploadInput } from "../../services/files/media-objects-input.js";
import { servedAs } from "../../services/files/media-types.js";
import { parseInput } from "../../services/requests/input.js";
import { queryFlag } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { Route } from "../route.js";
import { safeFileHeaders } from "../safe-file.js";
import { sendStoredFile } from "../stored-file.js";
import { readUploadBody, UPLOAD_BODIES, type UploadSink } from "../upload-body.js";
import { addBlobTransferRoutes } from "./blob-transfers.js";
import { addMediaObjectRoutes, openHandler, sendMediaObject } from "./media-objects.js";

/** Of variant B, whose host is the same (docs/spec/README.md#versions). */
const VERSION = "2.0.0";

const uploadQuery = z.object({
  /** Without the metadata of a picture. */
  strip: queryFlag.default(false),
});

type MediaServices = Pick<Services, "blobTransfers" | "bodies" | "media" | "mediaLinks" | "mediaObjects">;

/** `home` is where a browser that looks for a file in vain is led. */
export function addMediaRoutes(route: Route, endpoint: Endpoint, services: MediaServices, home: () => string): void {
  const { media, mediaLinks, mediaObjects } = services;
  const announce = (ctx: RequestContext, body: JsonObject, strip: boolean) => {
    if (strip) throw invalidInput("What goes straight to the blob store cannot be stripped on its way.", "strip");
    return mediaObjects.createUpload(ctx, parseInput(createUploadInput, body));
  };
  route("/", {
    GET: (exchange) => exchange.sendJson({ name: "Sluice media", version: VERSION }),
  });
  route("/upload", {
    POST: endpoint({
      requires: requireAccount,
      query: uploadQuery,
      reads: UPLOAD_BODIES,
      handler: async (ctx, { exchange, query: { strip }, allowance }) => {
        const sink: UploadSink<ReceivedMedia> = {
          receive: (content, field) => mediaLinks.receive(ctx, content, field),
          discard: (received) => mediaLinks.discard(received),
        };
        const upload = await readUploadBody(exchange.req, sink, allowance);
        if (upload.kind === "announcement") return announce(ctx, upload.body, strip);
        const { received, contentType, name } = upload;
        const { id, url, contentType: found, size, duplicate } = await mediaLinks.upload(ctx, { ...received, contentType, name, strip });
        return { id, url, contentType: found, size, duplicate };
      },
    }),
  });
  addMediaObjectRoutes(route, endpoint, services);
  addBlobTransferRoutes(route, services);
  route("/:media", {
    GET: openHandler(async (exchange) => {
      const item = await media.get(exchange.parameter("media"));
      await (item.kind === "file" ? sendMedia(exchange, item.file) : sendMediaObject(exchange, item.object, mediaObjects));
    }, home),
  });
}

async function sendMedia(exchange: Exchange, media: StoredMedia): Promise<void> {
  await sendStoredFile(exchange, { etag: `"${media.sha256}"`, sizeBytes: media.sizeBytes, open: media.open }, await toHeaders(media));
}

async function toHeaders({ id, contentType: stored, name }: StoredMedia): Promise<OutgoingHttpHeaders> {
  const { contentType, isInline } = await servedAs(stored);
  const disposition = isInline ? null : toDisposition("attachment", name ?? id);
  return {
    ...safeFileHeaders({ contentType, disposition, cacheControl: "public, max-age=31536000, immutable" }),
    "X-Content-Hash": id,
  };
}
