/**
 * A form whose limits are the gateway's: what it says of a field is shown at that field, and what it says of none above the form. What is
 * typed stays, whatever happens.
 */
import { useState } from "react";
import type { CombinedError } from "urql";

export interface ServerForm {
  /** What the gateway has said of the field, by the name that the graph's input has for it. */
  readonly errorOf: (field: string) => string | undefined;
  /** What it said that is of none of the fields shown. */
  readonly rest: CombinedError | undefined;
  /** Takes the answer of a mutation; true when there was no error. */
  readonly accept: (answer: { readonly error?: CombinedError | undefined }) => boolean;
  readonly clear: (field: string) => void;
  /** What a text field is given. What was said of it is gone when it is changed. */
  readonly text: <Value>(field: string, value: Value, set: (value: Value) => void) => InputProps<Value, TextEvent<Value>>;
  /** The same for an input that calls back with its value, such as a Select; it may give another type than it takes. */
  readonly input: <Value, Given = Value>(field: string, value: Value, set: (value: Given) => void) => InputProps<Value, Given>;
}

interface InputProps<Value, Given> {
  readonly value: Value;
  readonly onChange: (given: Given) => void;
  readonly error: string | undefined;
}

interface TextEvent<Value> {
  readonly target: { readonly value: Value };
}

export function useServerForm(fields: readonly string[]): ServerForm {
  const [error, setError] = useState<CombinedError>();
  const [cleared, setCleared] = useState<ReadonlySet<string>>(new Set());
  const byField = error ? messagesByField(error) : new Map<string, string>();
  const fieldOf = (param: string) => fields.find((field) => isWithin(param, field));
  const shown = new Map([...byField].map(([param, message]) => [fieldOf(param), message] as const));
  const isOfFields = byField.size > 0 && [...byField.keys()].every((param) => fieldOf(param) !== undefined);
  return withInputs({
    errorOf: (field) => (cleared.has(field) ? undefined : shown.get(field)),
    rest: isOfFields ? undefined : error,
    accept: ({ error: met }) => {
      setError(met);
      setCleared(new Set());
      return met === undefined;
    },
    clear: (field) => setCleared((before) => new Set(before).add(field)),
  });
}

/** What either of two forms has been told, as one; what is of no field, and what answers are taken, is the first's. */
export function mergeForms(first: ServerForm, second: ServerForm): ServerForm {
  return withInputs({
    errorOf: (field) => first.errorOf(field) ?? second.errorOf(field),
    rest: first.rest,
    accept: first.accept,
    clear: (field) => {
      first.clear(field);
      second.clear(field);
    },
  });
}

function withInputs(form: Omit<ServerForm, "text" | "input">): ServerForm {
  const input: ServerForm["input"] = (field, value, set) => ({
    value,
    onChange: (given) => {
      set(given);
      form.clear(field);
    },
    error: form.errorOf(field),
  });
  return { ...form, input, text: (field, value, set) => input(field, value, ({ target }) => set(target.value)) };
}

/** Whether the gateway has said something of the field. */
export function hasErrorFor(error: CombinedError, field: string): boolean {
  return [...messagesByField(error).keys()].some((param) => isWithin(param, field));
}

/** The gateway may name a part of the field, or the whole input before it. */
function isWithin(param: string, field: string): boolean {
  return param === field || param.endsWith(`.${field}`) || param.startsWith(`${field}.`) || param.startsWith(`${field}[`);
}

/** `details.fieldErrors` has what was said of each field; `param` names the first. */
function messagesByField({ graphQLErrors }: CombinedError): Map<string, string> {
  const messages = new Map<string, string>();
  for (const { message, extensions } of graphQLErrors) {
    const { param, details } = extensions as { readonly param?: unknown; readonly details?: { readonly fieldErrors?: unknown } };
    for (const [field, said] of Object.entries(details?.fieldErrors ?? {})) {
      if (Array.isArray(said) && said.length > 0) messages.set(field, said.map(String).join(" "));
    }
    if (typeof param === "string" && !messages.has(param)) messages.set(param, message);
  }
  return messages;
}
