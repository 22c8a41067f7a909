/**
 * An answer that its upstream compressed although it was asked not to. It is decompressed as it is read, so that its reader's bounds are
 * those of the decompressed bytes, and a small body cannot become a large one in memory.
 */
import type { IncomingHttpHeaders } from "node:http";
import { Readable, type Transform } from "node:stream";
import zlib from "node:zlib";
import { ProviderError } from "../formats/upstream-error.js";
import { readPieces, type UpstreamResponse } from "./upstream-response.js";

/** `createZstdDecompress` came with Node 22.15. */
const zstd: unknown = Reflect.get(zlib, "createZstdDecompress");

const DECODERS: ReadonlyMap<string, () => Transform> = new Map([
  ["gzip", () => zlib.createGunzip()],
  ["x-gzip", () => zlib.createGunzip()],
  ["deflate", () => zlib.createInflate()],
  ["br", () => zlib.createBrotliDecompress()],
  ...(typeof zstd === "function" ? [["zstd", () => zstd() as Transform] as const] : []),
]);

export function isDecodable(encoding: string): boolean {
  return DECODERS.has(encoding.trim().toLowerCase());
}

export class DecodedAnswer implements UpstreamResponse {
  private readonly decoder: Transform;
  /** Begins with the first read. */
  private pieces: AsyncIterator<Buffer> | null = null;
  private chunks: Buffer[] = [];
  private hasEnded = false;
  private failure: { readonly reason: unknown } | null = null;
  private waiting: Promise<void> | null = null;

  /** `encoding` is decodable. */
  constructor(
    private readonly encoded: UpstreamResponse,
    encoding: string,
  ) {
    this.decoder = (DECODERS.get(encoding.trim().toLowerCase()) as () => Transform)();
    // The iterator reports it; without a reader it concerns nothing.
    this.decoder.on("error", () => undefined);
  }

  get status(): number {
    return this.encoded.status;
  }

  get headers(): IncomingHttpHeaders {
    return this.encoded.headers;
  }

  async read(): Promise<readonly Buffer[] | null> {
    await this.untilReadable();
    return this.take();
  }

  untilReadable(): Promise<void> | null {
    if (this.chunks.length > 0 || this.hasEnded || this.failure !== null) return null;
    this.waiting ??= this.pull();
    return this.waiting;
  }

  take(): readonly Buffer[] | null {
    const { chunks } = this;
    if (chunks.length > 0) {
      this.chunks = [];
      return chunks;
    }
    if (this.failure !== null) throw this.failure.reason;
    return this.hasEnded ? null : chunks;
  }

  atHand(): null {
    return null;
  }

  readAll(bytesMax: number): Promise<Buffer> {
    return readPieces(this, bytesMax, "upstream");
  }

  destroy(): void {
    this.encoded.destroy();
    this.decoder.destroy();
  }

  finish(): void {
    this.encoded.finish();
    this.decoder.destroy();
  }

  private async pull(): Promise<void> {
    try {
      this.pieces ??= this.decode();
      const { done, value } = await this.pieces.next();
      if (done) this.hasEnded = true;
      else this.chunks.push(value);
    } catch (error) {
      // A failure of the connection came first.
      this.failure ??= { reason: cannotDecode(error) };
      this.encoded.destroy();
    }
    this.waiting = null;
  }

  private decode(): AsyncIterator<Buffer> {
    const { decoder } = this;
    const source = Readable.from(this.readEncoded());
    source.on("error", (error) => decoder.destroy(error));
    return source.pipe(decoder)[Symbol.asyncIterator]();
  }

  private async *readEncoded(): AsyncGenerator<Buffer> {
    try {
      for (let read = await this.encoded.read(); read !== null; read = await this.encoded.read()) yield* read;
    } catch (reason) {
      this.failure = { reason };
      throw reason instanceof Error ? reason : new Error("The answer ended early.", { cause: reason });
    }
  }
}

export function cannotDecode(cause?: unknown): ProviderError {
  return new ProviderError("invalid-response", "The upstream encoded its answer although it was asked not to, and it cannot be decoded.", {
    cause,
  });
}
