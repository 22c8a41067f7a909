/** Messages between the gateway and a guest: the headers of frames. Also bundled into the guest's program: types only. */

export type HeaderList = readonly (readonly [name: string, value: string])[];

export type ToGuest =
  /** The first message. The bytes are the agent's script. */
  | { readonly type: "run"; readonly request: { readonly url: string; readonly headers: HeaderList; readonly body: string } }
  /** The head of the answer to a `fetch`; its bytes come one `data` per `pull`. */
  | { readonly type: "head"; readonly id: number; readonly status: number; readonly headers: HeaderList }
  | { readonly type: "data"; readonly id: number }
  | { readonly type: "end"; readonly id: number }
  /** The answer to a `tool`. */
  | { readonly type: "result"; readonly id: number; readonly result: unknown }
  /** The call has failed. */
  | { readonly type: "error"; readonly id: number; readonly message: string };

export type FromGuest =
  /** A request to the gateway; the bytes are its body. The guest chooses ids. */
  | { readonly type: "fetch"; readonly id: number; readonly method: string; readonly path: string; readonly headers: HeaderList }
  | { readonly type: "tool"; readonly id: number; readonly server: string; readonly tool: string; readonly args: unknown }
  /** Requests more of the answer, or cancels it. */
  | { readonly type: "pull"; readonly id: number }
  | { readonly type: "cancel"; readonly id: number }
  /** The head of the agent's answer; its body is the bytes of `data` frames. */
  | { readonly type: "answer"; readonly status: number; readonly headers: HeaderList }
  | { readonly type: "data" }
  | { readonly type: "end" }
  /** The agent threw, or returned no Response. */
  | { readonly type: "failed"; readonly detail: string };
