/**
 * Embeddings over OpenAI's wire format. Requests the client's encoding, and passes the document on when the answer has it; upstreams
 * without base64 answer numbers, which are converted.
 */

import { toInputUsage } from "../../formats/openai-chat/usage.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { isRecord } from "../../lib/json.js";
import { EMBEDDING_ANSWER_BOUNDS, EMBEDDING_ANSWER_BYTES_MAX } from "../../limits.js";
import type { EmbeddingAnswer, EmbeddingCall, EmbeddingProvider, EmbeddingVector } from "../media.js";
import type { OpenAiClient } from "./client.js";

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** A vector is little-endian 32-bit floats. */
const FLOAT_BYTES = 4;

export class OpenAiEmbeddingProvider implements EmbeddingProvider {
  constructor(private readonly client: OpenAiClient) {}

  async embed(call: EmbeddingCall): Promise<EmbeddingAnswer> {
    const response = await this.client.sendWhole({ path: "/embeddings", json: toBody(call), signal: call.signal });
    const bytes = await response.readAll(EMBEDDING_ANSWER_BYTES_MAX);
    const answer = this.client.readObject(bytes, undefined, EMBEDDING_ANSWER_BOUNDS);
    const { vectors, isInOrder } = toVectors(answer.data, call.inputs.length);
    const usage = toInputUsage(answer.usage, this.client.onUnknownUsage);
    const isEncoded = vectors.every((vector) => typeof vector === "string");
    const isAsAsked = isEncoded ? call.encodingFormat === "base64" : call.encodingFormat !== "base64" && !vectors.some(isText);
    return { vectors, usage, warnings: [], ...(isInOrder && isAsAsked && usage !== null && { document: { bytes, object: answer } }) };
  }
}

function toBody({ extra, upstreamModel, inputs, isSingle, dimensions, encodingFormat }: EmbeddingCall): Record<string, unknown> {
  return {
    ...extra,
    model: upstreamModel,
    input: isSingle ? inputs[0] : inputs,
    ...(dimensions !== null && { dimensions }),
    ...(encodingFormat != null && { encoding_format: encodingFormat }),
  };
}

/** One vector per input, sorted by the list's indices if needed. */
function toVectors(data: unknown, count: number): { vectors: EmbeddingVector[]; isInOrder: boolean } {
  if (!Array.isArray(data) || data.length !== count) throw invalid(`The upstream did not answer ${count} embeddings.`);
  const vectors = new Array<EmbeddingVector | undefined>(count);
  let isInOrder = true;
  for (const [position, item] of data.entries()) {
    if (!isRecord(item) || !isVector(item.embedding)) throw invalid("The upstream answered an embedding that is no vector.");
    const index = item.index ?? position;
    if (!isIndex(index, count) || vectors[index] !== undefined) throw invalid("The upstream numbered its embeddings wrongly.");
    if (index !== position || item.index === undefined) isInOrder = false;
    vectors[index] = item.embedding;
  }
  return { vectors: vectors.filter((vector) => vector !== undefined), isInOrder };
}

function isIndex(value: unknown, count: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < count;
}

function isVector(value: unknown): value is readonly number[] | string {
  if (typeof value === "string") return BASE64.test(value) && Buffer.byteLength(value, "base64") % FLOAT_BYTES === 0;
  return Array.isArray(value) && value.length > 0 && value.every((number) => typeof number === "number");
}

function isText(vector: EmbeddingVector): boolean {
  return typeof vector === "string";
}

function invalid(message: string): ProviderError {
  return new ProviderError("invalid-response", message);
}
