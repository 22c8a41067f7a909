/** Requests of a payment processor: no redirect is followed, and an answer is read up to a bound. */
import { PROCESSOR_ANSWER_BYTES_MAX } from "./limits.js";

/** Rejects for an answer that is too long. */
export async function boundedFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const headers = new Headers(init?.headers);
  // fetch computes it.
  headers.delete("content-length");
  const answer = await fetch(input, { ...init, headers, redirect: "manual" });
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of answer.body ?? []) {
    bytes += piece.byteLength;
    // Leaving the loop ends the connection.
    if (bytes > PROCESSOR_ANSWER_BYTES_MAX) throw new Error(`The payment processor answered more than ${PROCESSOR_ANSWER_BYTES_MAX} bytes`);
    pieces.push(piece);
  }
  const { status, statusText, headers: fields } = answer;
  // Some statuses take no body.
  return new Response(bytes === 0 ? null : Buffer.concat(pieces), { status, statusText, headers: fields });
}
