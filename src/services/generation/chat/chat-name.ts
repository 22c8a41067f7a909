/** A chat's answer under the name that it was asked by: the one place where whatever a provider brings is named (see `AnswerName`). */
import type { AnswerName } from "../../../lib/answer-name.js";
import { formatSseEvent } from "../../../lib/sse.js";
import type { ChatAnswer, ChatChunk } from "../../../providers/provider.js";

export function namedAnswer(answer: ChatAnswer, name: AnswerName): ChatAnswer {
  const completion = name.inObject(answer.completion);
  return { ...answer, completion, bytes: name.inBytes(answer.bytes, answer.completion) ?? Buffer.from(JSON.stringify(completion)) };
}

export function namedChunk(chunk: ChatChunk, name: AnswerName): ChatChunk {
  const object = name.inObject(chunk.object);
  return { ...chunk, object, bytes: name.inBytes(chunk.bytes, chunk.object) ?? formatSseEvent(JSON.stringify(object)) };
}
