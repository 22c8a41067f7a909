/** Reading request bodies: each within an allowance, whole or piece by piece. How long a whole request may take is the server's `requestTimeout`. */
import type { IncomingMessage } from "node:http";
import { payloadTooLarge } from "../../errors.js";
import type { BodyAllowance, BodyOptions } from "./body-budget.js";

/** The caller left before the body was complete: there is nobody to answer. */
export class BodyAborted extends Error {
  override readonly name = "BodyAborted";
}

/** Null when the length is not known beforehand. */
export function declaredBytesOf({ headers }: IncomingMessage): number | null {
  if (headers["transfer-encoding"] !== undefined) return null;
  return Number(headers["content-length"] ?? 0);
}

/** Throws PAYLOAD_TOO_LARGE as soon as it is known, SERVICE_UNAVAILABLE, BAD_REQUEST when it comes too slowly, or BodyAborted. */
export async function readWhole(
  req: IncomingMessage,
  rules: Pick<BodyOptions, "bytesMax" | "hasFiles">,
  allowance: BodyAllowance,
): Promise<Buffer<ArrayBuffer>> {
  let giveUp: (error: Error) => void = ignore;
  const most = allowance.begin({ ...rules, declaredBytes: declaredBytesOf(req), onSlow: (error) => giveUp(error) });
  try {
    return await new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let size = 0;
      let isWhole = false;
      giveUp = (error) => {
        req.off("data", onData);
        req.pause();
        reject(error);
      };
      const onData = (chunk: Buffer) => {
        chunks.push(chunk);
        size += chunk.length;
        try {
          allowance.came(chunk.length);
          if (size > most) throw payloadTooLarge(most);
        } catch (error) {
          giveUp(error as Error);
        }
      };
      const onEnd = () => {
        isWhole = true;
        resolve(chunks.length === 1 && chunks[0] ? (chunks[0] as Buffer<ArrayBuffer>) : Buffer.concat(chunks, size));
      };
      // Every request closes in the end, nearly all of them after their bodies.
      const onClose = () => {
        if (!isWhole) reject(new BodyAborted());
      };
      if (req.destroyed) {
        onClose();
        return;
      }
      req.on("data", onData);
      req.on("end", onEnd);
      req.on("error", onClose);
      req.on("close", onClose);
    });
  } finally {
    allowance.end();
  }
}

/** Piece by piece, as fast as it is taken; whoever stops early leaves the rest unread. Throws as above. */
export async function* readPieces(req: IncomingMessage, bytesMax: number, allowance: BodyAllowance): AsyncGenerator<Buffer> {
  let giveUp: (error: Error) => void = ignore;
  const slow = new Promise<never>((_, reject) => {
    giveUp = reject;
  });
  slow.catch(ignore);
  const onSlow = (error: Error) => giveUp(error);
  const most = allowance.begin({ declaredBytes: declaredBytesOf(req), bytesMax, hasFiles: true, onSlow });
  // The request itself stays as it is, for the answer goes over the same connection.
  const pieces: AsyncIterator<Buffer> = req.iterator({ destroyOnReturn: false });
  try {
    for (let size = 0; ; ) {
      const { value, done } = await Promise.race([nextPiece(req, pieces), slow]);
      if (done) return;
      size += value.length;
      allowance.came(value.length);
      if (size > most) throw payloadTooLarge(most);
      yield value;
    }
  } finally {
    allowance.end();
    // Of a body that comes too slowly there is one under way, which ends with the connection.
    void pieces.return?.().catch(ignore);
  }
}

async function nextPiece(req: IncomingMessage, pieces: AsyncIterator<Buffer>): Promise<IteratorResult<Buffer>> {
  try {
    return await pieces.next();
  } catch (error) {
    throw req.complete ? error : new BodyAborted();
  }
}

function ignore(): void {}
