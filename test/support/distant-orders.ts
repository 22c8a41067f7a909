/** The messages between `distant-client.ts` and its thread. */
/** In a body, replaced by another number each time that it is sent. */
export const SERIAL = "SERIAL";

export interface Target {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type Order = { readonly load: Target & { readonly body: string } } | { readonly send: true };

export interface Received {
  /** On a WebSocket 200, or the code with which it was closed; 0 where there was no answer. */
  readonly status: number;
  /** The beginning of the answer; on a WebSocket of all messages of the operation, or the reason of the close. */
  readonly text: string;
}
