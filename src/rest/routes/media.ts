/**
 * The media host (docs/spec/media.md): uploads need a key, reading does not. Both variants share its addresses; routes of variant B only
 * come last.
 */
import type { OutgoingHttpHeaders } from "node:http";
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { invalidInput } from "../../errors.js";
import { type JsonObject, streamBody } from "../../http/body.js";
import type { Exchange } from "../../http/exchange.js";
import { toDisposition } from "../../lib/header-text.js";
import { INERT_FILE_POLICY } from "../../lib/inert-answer.js";
import type { Page, PageRequest } from "../../lib/pagination.js";
import { requireAccount } from "../../services/access/permissions.js";
import { MEDIA_PAGE_SIZE_DEFAULT, MEDIA_PAGE_SIZE_MAX } from "../../services/files/limits.js";
import type { MediaMetadata } from "../../services/files/media.js";
import type { ReceivedMedia, StoredMedia } from "../../services/files/media-links.js";
import type { MediaObject } from "../../services/files/media-objects.js";
import { createUploadInput } from "../../services/files/media-objects-input.js";
import { servedAs } from "../../services/files/media-types.js";
import { parseInput } from "../../services/requests/input.js";
import { queryFlag, queryInteger } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { openEndpoint } from "../open-endpoint.js";
import { json, jsonOr, type Nothing, sentOrRedirect } from "../openapi/answer.js";
import { amount, cursorText, nullableText, PIXEL, PIXEL_ID, pathId, time } from "../openapi/schemas.js";
import { sendNegotiatedError } from "../pages/error-page.js";
import { nextCursorOf, queryCursor } from "../query.js";
import type { Route } from "../route.js";
import { sendStoredFile } from "../stored-file.js";
import { readUploadBody, UPLOAD_BODIES, type UploadSink } from "../upload-body.js";

/** Of variant B on the same host (docs/spec/README.md#versions). */
const VERSION = "2.0.0";

const uploadQuery = z.object({
  strip: queryFlag.default(false).describe("Removes metadata from an image: location, time and camera."),
});

const file = { id: z.string(), contentType: z.string(), size: amount, tags: z.array(z.string()), createdAt: time };
const metadata = {
  ...file,
  name: nullableText,
  expiresAt: time.nullable().describe("When the file is deleted. Null: it is kept until an owner deletes it."),
};

const mediaUpload = json(
  "MediaUpload",
  z.union([
    z
      .looseObject({ id: z.string(), url: z.string(), contentType: z.string(), size: amount, duplicate: z.boolean() })
      .meta({ id: "StoredMedia" }),
    z
      .looseObject({
        id: z.string(),
        uploadUrl: z.string(),
        method: z.literal("PUT"),
        headers: z.record(z.string(), z.string()),
        expiresAt: time,
      })
      .meta({ id: "DirectUpload" }),
  ]),
);

const byMedia = z.object({
  media: pathId("The ID of a file: the first 16 hexadecimal digits of its SHA-256, or a UUID for a direct upload to the blob store."),
});

type MediaServices = Pick<Services, "blobTransfers" | "bodies" | "media" | "mediaLinks" | "mediaObjects">;

/** `home` is the link on a browser's 404 page. */
export function addMediaRoutes(route: Route, endpoint: Endpoint, services: MediaServices, home: () => string): void {
  const { media, mediaLinks, mediaObjects } = services;
  const announce = (ctx: RequestContext, body: JsonObject, strip: boolean) => {
    if (strip) throw invalidInput("Metadata cannot be removed from a direct upload: upload the file through the gateway.", "strip");
    return mediaObjects.createUpload(ctx, parseInput(createUploadInput, body));
  };
  route("/", {
    GET: openEndpoint({
      id: "getMediaHost",
      tag: "Media",
      summary: "Describes the media host.",
      answer: json("MediaHost", z.looseObject({ name: z.string(), version: z.string() })),
      handler: () => ({ name: "Sluice media", version: VERSION }),
    }),
  });
  route("/upload", {
    POST: endpoint({
      id: "uploadMedia",
      tag: "Media",
      summary: "Stores a file of up to 10 MiB for 14 days.",
      description:
        "The body is a form with the field `file`, JSON `{ data (base64), contentType, name }`, or the file itself. Uploading the file again restarts the 14 days. JSON without `data`, `{ contentType, size, name, tags }`, returns a URL to upload a file of up to 100 MiB to.",
      answer: mediaUpload,
      example: { body: { data: PIXEL, contentType: "image/png", name: "pixel.png" }, form: {} },
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
    GET: openEndpoint({
      id: "getMedia",
      tag: "Media",
      summary: "Returns a stored file. Needs no credentials. The content of a URL never changes.",
      answer: sentOrRedirect(
        { status: "302", why: "To a URL of the blob store that is valid for five minutes, for files that were uploaded directly to it." },
        "*/*",
      ),
      example: { parameters: { media: PIXEL_ID } },
      params: byMedia,
      handler: orErrorPage(async (exchange, params) => {
        const item = await media.get(params.media);
        await (item.kind === "file" ? sendMedia(exchange, item.file) : sendMediaObject(exchange, item.object, mediaObjects));
      }, home),
    }),
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

// Variant B only (docs/spec/media.md#direct-uploads): completing uploads, metadata, the gallery, deletion.

/** Of the redirect to a download: shorter than the download address is good. */
const REDIRECT_MAX_AGE_SECONDS = 60;

const listQuery = z.object({
  tag: z.string().optional().describe("Lists files of all accounts with this tag."),
  limit: queryInteger(z.int().min(1).max(MEDIA_PAGE_SIZE_MAX)).default(MEDIA_PAGE_SIZE_DEFAULT).describe("The maximum number of rows."),
  cursor: queryCursor("media").optional().describe(cursorText),
});

const mediaList = json(
  "MediaList",
  z.looseObject({
    items: z.array(z.looseObject({ ...metadata, url: z.string() })),
    nextCursor: z.string().nullable(),
    hasMore: z.boolean(),
  }),
);

function addMediaObjectRoutes(route: Route, endpoint: Endpoint, { media, mediaObjects }: Pick<Services, "media" | "mediaObjects">): void {
  route("/upload/:media/complete", {
    POST: endpoint({
      id: "completeUpload",
      tag: "Media",
      summary: "Completes an upload, so that the file can be read.",
      description: "409 when no file has arrived yet, 400 when it differs from the announced one.",
      answer: json("MediaObject", z.looseObject({ ...file, url: z.string() })),
      params: byMedia,
      handler: async (ctx, { params }) => {
        const { id, url, contentType, size, tags, createdAt } = await mediaObjects.complete(ctx, params.media);
        return { id, url, contentType, size, tags, createdAt };
      },
    }),
  });
  route("/media", {
    GET: endpoint({
      id: "listMedia",
      tag: "Media",
      summary: "Lists files with a tag, newest first. Without a tag, lists the account's own tagged files, which needs a key.",
      answer: mediaList,
      isPublic: true,
      query: listQuery,
      handler: async (ctx, { query: { tag, limit, cursor } }) => {
        const page: PageRequest = { first: limit, after: cursor };
        return toList(tag === undefined ? await mediaObjects.listOwn(ctx, page) : await mediaObjects.listTagged(tag, page));
      },
    }),
  });
  route("/media/:media", {
    DELETE: endpoint({
      id: "deleteMedia",
      tag: "Media",
      summary: "Deletes a tagged file of the account. Needs a secret key.",
      answer: json("DeletedMedia", z.looseObject({ id: z.string(), deleted: z.literal(true) })),
      params: byMedia,
      handler: async (ctx, { params }) => {
        const { id } = await mediaObjects.delete(ctx, params.media);
        return { id, deleted: true as const };
      },
    }),
  });
  route("/:media/metadata", {
    GET: openEndpoint({
      id: "getMediaMetadata",
      tag: "Media",
      summary: "Returns the metadata of a stored file. Needs no credentials.",
      answer: jsonOr(json("MediaMetadata", z.looseObject(metadata))),
      example: { parameters: { media: PIXEL_ID } },
      params: byMedia,
      handler: orErrorPage(async (_exchange, params) => toMetadata(await media.describe(params.media))),
    }),
  });
}

/** Reading needs no key. Browsers get errors as a page with a link to `home`. */
function orErrorPage<Params, Value>(
  answer: (exchange: Exchange, params: Params) => Promise<Value>,
  home: () => string = () => "/",
): (exchange: Exchange, params: Params) => Promise<Value | Nothing> {
  return async (exchange, params) => {
    try {
      return await answer(exchange, params);
    } catch (error) {
      return sendNegotiatedError(exchange, error, home());
    }
  };
}

/** Redirects to the bytes. An address signed for GET does not allow HEAD, which is answered here. */
async function sendMediaObject(exchange: Exchange, object: MediaObject, mediaObjects: Services["mediaObjects"]): Promise<void> {
  if (exchange.req.method === "HEAD") {
    const { contentType } = await servedAs(object.contentType);
    exchange.writeHead(200, {
      "Content-Type": contentType,
      "Content-Length": object.size,
      "Cache-Control": `public, max-age=${REDIRECT_MAX_AGE_SECONDS}`,
    });
  } else {
    const location = await mediaObjects.linkTo(object);
    exchange.writeHead(302, { Location: location, "Content-Length": 0, "Cache-Control": `public, max-age=${REDIRECT_MAX_AGE_SECONDS}` });
  }
  exchange.res.end();
}

function toList(page: Page<MediaObject>) {
  return {
    items: page.items.map((item) => ({ ...toMetadata(item), url: item.url })),
    nextCursor: nextCursorOf(page, "media"),
    hasMore: page.hasNextPage,
  };
}

function toMetadata({ id, contentType, size, name, tags, createdAt, expiresAt }: Omit<MediaMetadata, "kind">) {
  return { id, contentType, size, name, tags, createdAt, expiresAt };
}

// Signed addresses for uploads and downloads of blobs on the gateway's own disk: the signature is the credential.

const byBlob = z.object({ folder: z.string(), name: z.string() });

function addBlobTransferRoutes(route: Route, { blobTransfers, bodies }: Pick<Services, "blobTransfers" | "bodies">): void {
  route("/blobs/:folder/:name", {
    PUT: openEndpoint({
      id: null,
      params: byBlob,
      handler: orErrorPage(async (exchange, params) => {
        const { headers } = exchange.req;
        const length = headers["content-length"];
        // The disk space was reserved with the address.
        const allowance = bodies.allowPassing();
        const { sizeBytes } = await blobTransfers.upload(addressOf(exchange, params), {
          contentType: headers["content-type"] ?? null,
          sizeBytes: length === undefined ? null : Number(length),
          content: streamBody(exchange.req, allowance),
        });
        return { size: sizeBytes };
      }),
    }),
    GET: openEndpoint({
      id: null,
      params: byBlob,
      handler: orErrorPage(async (exchange, params) => {
        const { sizeBytes, writtenAt, open, ...served } = await blobTransfers.get(addressOf(exchange, params));
        // An address allows one upload, so other bytes have another write time.
        const etag = `"${sizeBytes.toString(16)}-${writtenAt.getTime().toString(16)}"`;
        await sendStoredFile(exchange, { etag, sizeBytes, open }, safeFileHeaders(served));
      }),
    }),
  });
}

function addressOf(
  exchange: Exchange,
  { folder, name }: z.output<typeof byBlob>,
): { readonly key: string; readonly query: URLSearchParams } {
  return {
    key: `${folder}/${name}`,
    query: new URLSearchParams(exchange.query.parameters),
  };
}

/** Headers of uploaded files that keep a browser from running them, beside those of every answer (docs/spec/media.md#reading). */
interface ServedFile {
  /** Without a charset. */
  readonly contentType: string;
  /** The whole header; null when browsers may display the file. */
  readonly disposition: string | null;
  /** The whole header; null: none. */
  readonly cacheControl: string | null;
}

function safeFileHeaders({ contentType, disposition, cacheControl }: ServedFile): OutgoingHttpHeaders {
  return {
    "Content-Type": /^text\/[^;]+$/.test(contentType) ? `${contentType}; charset=utf-8` : contentType,
    ...(cacheControl !== null && { "Cache-Control": cacheControl }),
    ...(disposition !== null && { "Content-Disposition": disposition }),
    "Content-Security-Policy": INERT_FILE_POLICY,
    "Cross-Origin-Resource-Policy": "cross-origin",
  };
}
