/**
 * Form state for validation by the gateway. Field errors are shown at their fields, all other errors above the form. Errors never clear the
 * input.
 */
import { useState } from "react";
import type { CombinedError } from "urql";

export interface ServerForm {
  /** Error message of a field, by its name in the GraphQL input. */
  readonly errorOf: (field: string) => string | undefined;
  /** Error that does not belong to the shown fields alone. */
  readonly rest: CombinedError | undefined;
  /** Stores the error of a mutation result. Returns true when there is none. */
  readonly accept: (answer: { readonly error?: CombinedError | undefined }) => boolean;
  readonly clear: (field: string) => void;
  /** Props of a text field. A change clears its error. */
  readonly text: <Value>(field: string, value: Value, set: (value: Value) => void) => InputProps<Value, TextEvent<Value>>;
  /** Props of an input whose onChange gets the value itself, such as a Select. */
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
    accept: ({ error: failure }) => {
      setError(failure);
      setCleared(new Set());
      return failure === undefined;
    },
    clear: (field) => setCleared((before) => new Set(before).add(field)),
  });
}

/** Merges the field errors of two forms. `rest` and `accept` are those of the first. */
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

export function hasErrorFor(error: CombinedError, field: string): boolean {
  return [...messagesByField(error).keys()].some((param) => isWithin(param, field));
}

/** `param` may be a path: to a part of the field (`field.x`, `field[0]`), or from the whole input (`input.field`). */
function isWithin(param: string, field: string): boolean {
  return param === field || param.endsWith(`.${field}`) || param.startsWith(`${field}.`) || param.startsWith(`${field}[`);
}

/** Reads `details.fieldErrors`, which has all messages by field, and `param`, which names the first field. */
function messagesByField({ graphQLErrors }: CombinedError): Map<string, string> {
  const messages = new Map<string, string>();
  for (const { message, extensions } of graphQLErrors) {
    const { param, details } = extensions as { readonly param?: unknown; readonly details?: { readonly fieldErrors?: unknown } };
    for (const [field, errors] of Object.entries(details?.fieldErrors ?? {})) {
      if (Array.isArray(errors) && errors.length > 0) messages.set(field, errors.map(String).join(" "));
    }
    if (typeof param === "string" && !messages.has(param)) messages.set(param, message);
  }
  return messages;
}
