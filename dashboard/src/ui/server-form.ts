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
  readonly clear: (field?: string) => void;
}

export function useServerForm(fields: readonly string[]): ServerForm {
  const [error, setError] = useState<CombinedError>();
  const [cleared, setCleared] = useState<ReadonlySet<string>>(new Set());
  const byField = error ? messagesByField(error) : new Map<string, string>();
  const fieldOf = (param: string) =>
    fields.find(
      (field) => param === field || param.endsWith(`.${field}`) || param.startsWith(`${field}.`) || param.startsWith(`${field}[`),
    );
  const shown = new Map([...byField].map(([param, message]) => [fieldOf(param), message] as const));
  const isOfFields = byField.size > 0 && [...byField.keys()].every((param) => fieldOf(param) !== undefined);
  return {
    errorOf: (field) => (cleared.has(field) ? undefined : shown.get(field)),
    rest: isOfFields ? undefined : error,
    accept: ({ error: met }) => {
      setError(met);
      setCleared(new Set());
      return met === undefined;
    },
    clear: (field) => (field === undefined ? setError(undefined) : setCleared((before) => new Set(before).add(field))),
  };
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
