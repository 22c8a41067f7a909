/** What the media host has for variant B alone (docs/spec/media.md#direct-uploads): completing uploads, metadata, the gallery, deletion. */
import * as z from "zod";
import type { Exchange } from "../../http/exchange.js";
import { encodeCursor, type Page, type PageRequest } from "../../lib/pagination.js";
import { MEDIA_PAGE_SIZE_DEFAULT, MEDIA_PAGE_SIZE_MAX } from "../../services/files/limits.js";
import type { MediaMetadata } from "../../services/files/media.js";
import type { MediaObject } from "../../services/files/media-objects.js";
import { servedAs } from "../../services/files/media-types.js";
import { queryInteger } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { sendErrorAsAsked } from "../pages/error-page.js";
import { queryCursor } from "../query.js";
import type { Route, RouteHandler } from "../route.js";

/** Of the redirect to a download: shorter than the download's address works, so that a kept one still leads somewhere. */
const REDIRECT_MAX_AGE_SECONDS = 60;

const listQuery = z.object({
  /** Everybody's files with it; without it, the caller's own. */
  tag: z.string().optional(),
  limit: queryInteger(z.int().min(1).max(MEDIA_PAGE_SIZE_MAX)).default(MEDIA_PAGE_SIZE_DEFAULT),
  cursor: queryCursor().optional(),
});

export function addMediaObjectRoutes(
  route: Route,
  endpoint: Endpoint,
  { media, mediaObjects }: Pick<Services, "media" | "mediaObjects">,
): void {
  route("/upload/:media/complete", {
    POST: endpoint({
      handler: async (ctx, { exchange }) => {
        const { id, url, contentType, size, tags, createdAt } = await mediaObjects.complete(ctx, exchange.parameter("media"));
        return { id, url, contentType, size, tags, createdAt };
      },
    }),
  });
  route("/media", {
    GET: endpoint({
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
      handler: async (ctx, { exchange }) => {
        const { id } = await mediaObjects.delete(ctx, exchange.parameter("media"));
        return { id, deleted: true };
      },
    }),
  });
  route("/:media/metadata", {
    GET: openHandler(async (exchange) => exchange.sendJson(toMetadata(await media.describe(exchange.parameter("media"))))),
  });
}

/** Reading looks at no key. A browser is shown what is wrong on a page that leads to `home`. */
export function openHandler(answer: (exchange: Exchange) => Promise<void>, home: () => string = () => "/"): RouteHandler {
  return async (exchange) => {
    try {
      await answer(exchange);
    } catch (error) {
      await sendErrorAsAsked(exchange, error, home());
    }
  };
}

/** Sends the reader on to the bytes. An address that is signed for GET is none for HEAD, which is therefore answered here. */
export async function sendMediaObject(exchange: Exchange, object: MediaObject, mediaObjects: Services["mediaObjects"]): Promise<void> {
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

function toList({ items, hasNextPage }: Page<MediaObject>) {
  const last = hasNextPage ? items.at(-1) : undefined;
  return {
    items: items.map((item) => ({ ...toMetadata(item), url: item.url })),
    nextCursor: last ? encodeCursor({ timestamp: last.createdAt, id: last.id }) : null,
    hasMore: hasNextPage,
  };
}

function toMetadata({ id, contentType, size, name, tags, createdAt, expiresAt }: Omit<MediaMetadata, "kind">) {
  return { id, contentType, size, name, tags, createdAt, expiresAt };
}
