/** What the gateway and a guest tell each other: the headers of their frames. Bundled into the guest's program too: types alone. */

export type HeaderList = readonly (readonly [name: string, value: string])[];

export type ToGuest =
  /** The first. The bytes are the agent's script. */
  | { readonly type: "run"; readonly request: { readonly url: string; readonly headers: HeaderList; readonly body: string } }
  /** The answer to a `fetch` begins; its bytes come one `data` for each `pull`. */
  | { readonly type: "head"; readonly id: number; readonly status: number; readonly headers: HeaderList }
  | { readonly type: "data"; readonly id: number }
  | { readonly type: "end"; readonly id: number }
  /** The answer to a `tool`. */
  | { readonly type: "result"; readonly id: number; readonly result: unknown }
  /** Nothing more will come of the call. */
  | { readonly type: "error"; readonly id: number; readonly message: string };

export type FromGuest =
  /** A request to the gateway; the bytes are its body. Ids are the guest's own choice. */
  | { readonly type: "fetch"; readonly id: number; readonly method: string; readonly path: string; readonly headers: HeaderList }
  | { readonly type: "tool"; readonly id: number; readonly server: string; readonly tool: string; readonly args: unknown }
  /** More of the answer is wanted, or none of it any more. */
  | { readonly type: "pull"; readonly id: number }
  | { readonly type: "cancel"; readonly id: number }
  /** The agent's answer begins; its body is the bytes of `data` frames. */
  | { readonly type: "answer"; readonly status: number; readonly headers: HeaderList }
  | { readonly type: "data" }
  | { readonly type: "end" }
  /** The agent threw, or answered no Response. */
  | { readonly type: "failed"; readonly detail: string };
