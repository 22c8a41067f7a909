/**
 * What a route answers: printed in the contract, and the type of the handler's result. Only the types check a result: answers are not
 * parsed at run time.
 */
import type * as z from "zod";

/** Who sends the answer: `value`: the endpoint sends the handler's result as JSON; `sent`: the handler sends it and has no result. */
type Sender = "value" | "value or sent" | "sent";

/** A schema by its name in the contract. */
export interface NamedSchema<Schema extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly schema: Schema;
}

export interface Answer<By extends Sender = Sender, Schema extends z.ZodType = z.ZodType> {
  readonly by: By;
  /** The JSON answer; null: other content types only. */
  readonly json: NamedSchema<Schema> | null;
  readonly types: readonly string[];
  /** The only answer is 201, 204, or 101 to a WebSocket (and 426 to other requests). Default: 200. */
  readonly status?: 201 | 204 | 101;
  /** A redirect, beside the answer. */
  readonly redirect?: { readonly status: "302" | "303"; readonly why: string };
}

/** An answer whose value the handler returns, with its schema for lists and relatives of it. */
export interface JsonAnswer<Schema extends z.ZodType = z.ZodType> extends Answer<"value", Schema>, NamedSchema<Schema> {
  readonly json: NamedSchema<Schema>;
}

export const EVENT_STREAM = "text/event-stream";

/** JSON: the handler returns the value. Names are unique in the contract. */
export function json<Schema extends z.ZodType>(name: string, schema: Schema): JsonAnswer<Schema> {
  return { by: "value", json: { name, schema }, types: [], name, schema };
}

/** The same with the status 201, for OAuth endpoints. */
export function createdJson<Schema extends z.ZodType>(name: string, schema: Schema): JsonAnswer<Schema> {
  return { ...json(name, schema), status: 201 };
}

/** JSON, or one of these content types, which the handler sends itself and then returns undefined. */
export function jsonOr<Schema extends z.ZodType>(
  { json }: JsonAnswer<Schema>,
  ...types: readonly string[]
): Answer<"value or sent", Schema> {
  return { by: "value or sent", json, types };
}

/** JSON that the handler writes itself, such as bytes of an upstream, or one of these content types. */
export function writtenJson({ json }: JsonAnswer, ...types: readonly string[]): Answer<"sent"> {
  return { by: "sent", json, types };
}

/** Texts, files and streams, which the handler sends. */
export function sent(...types: readonly string[]): Answer<"sent"> {
  return { by: "sent", json: null, types };
}

/** The same, or a redirect. */
export function sentOrRedirect(redirect: NonNullable<Answer["redirect"]>, ...types: readonly string[]): Answer<"sent"> {
  return { by: "sent", json: null, types, redirect };
}

/** The handler sends 204. */
export const NO_CONTENT: Answer<"sent"> = { by: "sent", json: null, types: [], status: 204 };

/** A WebSocket. */
export const UPGRADE: Answer<"sent"> = { by: "sent", json: null, types: [], status: 101 };

/** The handler's result. Without an answer any JSON value, or undefined when the handler has answered itself. */
export type ResultOf<A extends Answer> = [A] extends [never] ? unknown : ResultBy<A>;

type ResultBy<A extends Answer> =
  A extends Answer<"value", infer Schema>
    ? Presented<z.output<Schema>>
    : A extends Answer<"value or sent", infer Schema>
      ? Presented<z.output<Schema>> | Nothing
      : Nothing;

/** The result of a handler that has sent the answer. */
export type Nothing = ReturnType<() => void>;

/** What serializes to a value of the schema: its objects and lists may be read-only, and those that are open need no further fields. */
export type Presented<Value> = Value extends Date
  ? Date
  : Value extends readonly (infer Item)[]
    ? readonly Presented<Item>[]
    : Value extends object
      ? { readonly [Key in keyof Value as string extends Key ? (unknown extends Value[Key] ? never : Key) : Key]: Presented<Value[Key]> }
      : Value;
