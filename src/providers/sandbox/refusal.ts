/** Refusals of the sandbox, in the form of an upstream's: a 400 with a message. */
import { ProviderError } from "../../formats/upstream-error.js";

export function refuse(message: string, param?: string): ProviderError {
  return new ProviderError("status", `The sandbox refused: ${message}`, {
    status: 400,
    upstreamMessage: message,
    ...(param !== undefined && { upstreamParam: param }),
  });
}
