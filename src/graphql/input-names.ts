/**
 * Services use the names of REST, and name refused fields by them (`max_tokens`). This converts those names to the schema's
 * (`maxTokens`), in `param`, `details` and the message of an error, for every field with an `input`. The wire name of an input field
 * is its extension `wireName`, or else its own name in snake case.
 */
import {
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLSchema,
  getNullableType,
  isInputObjectType,
  isListType,
} from "graphql";
import { AppError, type ValidationDetails } from "../errors.js";

type AnyField = GraphQLField<unknown, unknown>;
type Rename = (error: unknown) => unknown;

/** Wraps every root field with an `input`, so that its errors use the schema's names. */
export function nameFieldsAsTheSchemaDoes(schema: GraphQLSchema): void {
  for (const root of [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()]) {
    for (const field of Object.values(root?.getFields() ?? {})) {
      const input = getNullableType(field.args.find(({ name }) => name === "input")?.type);
      if (isInputObjectType(input)) renameErrorsOf(field, (error) => inTheWordsOf(input, error));
    }
  }
}

function renameErrorsOf(field: AnyField, rename: Rename): void {
  const { resolve, subscribe } = field;
  // A subscription resolves its events, long after its input was checked.
  if (subscribe)
    field.subscribe = renaming(subscribe, rename, (source) => renamingSource(source as AsyncIterableIterator<unknown>, rename));
  else if (resolve) field.resolve = renaming(resolve, rename, (value) => value);
}

function renaming(
  resolve: GraphQLFieldResolver<unknown, unknown>,
  rename: Rename,
  wrap: (value: unknown) => unknown,
): GraphQLFieldResolver<unknown, unknown> {
  return (...args) => {
    try {
      const value = resolve(...args);
      if (!(value instanceof Promise)) return wrap(value);
      return value.then(wrap, (error: unknown) => {
        throw rename(error);
      });
    } catch (error) {
      throw rename(error);
    }
  };
}

function renamingSource(source: AsyncIterableIterator<unknown>, rename: Rename): AsyncIterableIterator<unknown> {
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () =>
      source.next().catch((error: unknown) => {
        throw rename(error);
      }),
    return: async (value?: unknown) => (await source.return?.(value)) ?? { done: true, value },
  };
}

/** Converts the names in an error. Errors without field names are returned unchanged. */
export function inTheWordsOf(input: GraphQLInputObjectType, error: unknown): unknown {
  if (!(error instanceof AppError)) return error;
  const { param, details, code, message, retryAfterSeconds, cause, isFinal } = error;
  const fieldErrors = (details as Partial<ValidationDetails> | undefined)?.fieldErrors;
  if (param === undefined && fieldErrors === undefined) return error;
  const paths = new Map(
    [...(param === undefined ? [] : [param]), ...Object.keys(fieldErrors ?? {})].map((path) => [path, toPath(input, path)]),
  );
  const renamed = [...paths].filter(([path, name]) => path !== name);
  if (renamed.length === 0 && !message.includes("_")) return error;
  const words = wordsOf(input);
  const say = (text: string) => inWords(text, words);
  return new AppError(code, say(renamed.reduce(renameInMessage, message)), {
    ...{ cause, isFinal },
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(param !== undefined && { param: paths.get(param) ?? param }),
    ...(details !== undefined && {
      details: {
        ...details,
        ...(fieldErrors && {
          fieldErrors: Object.fromEntries(Object.entries(fieldErrors).map(([path, said]) => [paths.get(path) ?? path, said.map(say)])),
        }),
      },
    }),
  });
}

/** A message begins with the field that it concerns, or lists several one after the other. */
function renameInMessage(message: string, [path, name]: readonly [string, string]): string {
  return ` ${message}`.replaceAll(` ${path}: `, ` ${name}: `).slice(1);
}

/**
 * Converts `messages.0.tool_calls` to `messages.0.toolCalls`. A field that is not in the input but allowed in its `extra` is placed
 * there.
 */
function toPath(input: GraphQLInputObjectType, path: string): string {
  const segments = path.split(".");
  const named: string[] = [];
  let type: GraphQLInputType = input;
  for (const [place, segment] of segments.entries()) {
    type = getNullableType(type);
    if (isListType(type) && isIndex(segment)) {
      named.push(segment);
      type = type.ofType;
      continue;
    }
    if (!isInputObjectType(type)) return [...named, ...segments.slice(place)].join(".");
    const field = fieldOf(type, segment, segments[place + 1]);
    if (!field) return [...named, ...(place === 0 && "extra" in type.getFields() ? ["extra"] : []), ...segments.slice(place)].join(".");
    named.push(field.name);
    if (isIndex(segment)) named.push(segment);
    type = isIndex(segment) && isListType(field.type) ? field.type.ofType : field.type;
  }
  return named.join(".");
}

/** One name can be that of a list and that of a text; the next part decides. An index alone belongs to the only list. */
function fieldOf(type: GraphQLInputObjectType, segment: string, next = ""): GraphQLInputField | undefined {
  const fields = Object.values(type.getFields());
  const isList = (field: GraphQLInputField) => isListType(getNullableType(field.type));
  if (isIndex(segment)) return fields.find(isList);
  const called = fields.filter((field) => field.name === segment || wireNameOf(field) === segment);
  return called.find((field) => isList(field) === isIndex(next)) ?? called[0];
}

function isIndex(segment: string): boolean {
  return /^\d+$/.test(segment);
}

function wireNameOf({ name, extensions }: GraphQLInputField): string {
  return (extensions.wireName as string | undefined) ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const WORDS = new WeakMap<GraphQLInputObjectType, ReadonlyMap<string, string>>();

/** Fields whose wire names cannot be confused with words of a sentence. */
function wordsOf(input: GraphQLInputObjectType): ReadonlyMap<string, string> {
  const known = WORDS.get(input);
  if (known) return known;
  const fields = Object.values(input.getFields()).map((field) => [wireNameOf(field), field.name] as const);
  const words = new Map(fields.filter(([wireName]) => wireName.includes("_")));
  WORDS.set(input, words);
  return words;
}

function inWords(text: string, words: ReadonlyMap<string, string>): string {
  return text.includes("_") ? text.replace(/[\w.]+/g, (word) => words.get(word) ?? word) : text;
}
