/** The addresses that the gateway signs for uploads and downloads of blobs on its own disk: no key, the signature says it all. */

import { streamBody } from "../../http/body.js";
import type { Exchange } from "../../http/exchange.js";
import type { Services } from "../../services/services.js";
import type { Route } from "../route.js";
import { safeFileHeaders } from "../safe-file.js";
import { sendStoredFile } from "../stored-file.js";
import { openHandler } from "./media-objects.js";

export function addBlobTransferRoutes(route: Route, { blobTransfers, bodies }: Pick<Services, "blobTransfers" | "bodies">): void {
  route("/blobs/:folder/:name", {
    PUT: openHandler(async (exchange) => {
      const { headers } = exchange.req;
      const length = headers["content-length"];
      // What it takes of the disk is counted with its address.
      const allowance = bodies.allowPassing();
      const { sizeBytes } = await blobTransfers.upload(addressOf(exchange), {
        contentType: headers["content-type"] ?? null,
        sizeBytes: length === undefined ? null : Number(length),
        content: streamBody(exchange.req, allowance),
      });
      exchange.sendJson({ size: sizeBytes });
    }),
    GET: openHandler(async (exchange) => {
      const { sizeBytes, writtenAt, open, ...served } = await blobTransfers.get(addressOf(exchange));
      // An address is for one upload: bytes of another time would be another file.
      const etag = `"${sizeBytes.toString(16)}-${writtenAt.getTime().toString(16)}"`;
      await sendStoredFile(exchange, { etag, sizeBytes, open }, safeFileHeaders(served));
    }),
  });
}

function addressOf(exchange: Exchange): { readonly key: string; readonly query: URLSearchParams } {
  return {
    key: `${exchange.parameter("folder")}/${exchange.parameter("name")}`,
    query: new URLSearchParams(exchange.query.parameters),
  };
}
