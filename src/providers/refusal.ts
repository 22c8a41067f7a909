/** What a request asks for and the adapter cannot express: the caller's mistake, told as an upstream tells it. */
import { ProviderError } from "./provider.js";

export function refuse(message: string, param: string): ProviderError {
  return new ProviderError("status", `The request was refused: ${message}`, {
    status: 400,
    upstreamMessage: message,
    upstreamParam: param,
  });
}
