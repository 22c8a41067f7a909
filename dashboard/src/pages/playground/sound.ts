/** Conversion of base64 to blobs and object URLs, and playback of streamed audio. */
import { useEffect, useState } from "react";

export function toBytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** Object URL of a blob, revoked when the component unmounts or the blob changes. */
export function useObjectUrl(blob: Blob | null): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (!blob) return setUrl(null);
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return url;
}

/** Audio that plays while it arrives, if the browser supports MediaSource for its type. Otherwise it plays when it is complete. */
export class GrowingSound {
  readonly #parts: Uint8Array<ArrayBuffer>[] = [];
  readonly #source: MediaSource | null;
  #buffer: SourceBuffer | null = null;
  #next = 0;
  #isWhole = false;
  /** URL for the audio element. Null when playback has to wait for the complete audio. */
  readonly url: string | null;

  constructor(private readonly contentType: string) {
    const canGrow = typeof MediaSource !== "undefined" && MediaSource.isTypeSupported(contentType);
    this.#source = canGrow ? new MediaSource() : null;
    this.url = this.#source ? URL.createObjectURL(this.#source) : null;
    this.#source?.addEventListener("sourceopen", () => {
      if (!this.#source || this.#buffer) return;
      this.#buffer = this.#source.addSourceBuffer(contentType);
      this.#buffer.addEventListener("updateend", () => this.#feed());
      this.#feed();
    });
  }

  append(bytes: Uint8Array<ArrayBuffer>): void {
    this.#parts.push(bytes);
    this.#feed();
  }

  end(): Blob {
    this.#isWhole = true;
    this.#feed();
    return new Blob(this.#parts, { type: this.contentType });
  }

  close(): void {
    if (this.url !== null) URL.revokeObjectURL(this.url);
  }

  #feed(): void {
    if (!this.#buffer || this.#buffer.updating || this.#source?.readyState !== "open") return;
    const part = this.#parts[this.#next];
    try {
      if (part) {
        this.#next += 1;
        this.#buffer.appendBuffer(part);
      } else if (this.#isWhole) this.#source.endOfStream();
    } catch {
      // The audio element reports the error itself. The complete audio is offered in any case.
    }
  }
}
