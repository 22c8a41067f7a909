/**
 * Services are asked in the words of REST, and name the fields that they refuse by them (`max_tokens`). Here those names become the
 * schema's (`maxTokens`), in `param`, `details` and the message of an error, for every field that takes an `input`. A field of an input
 * is called on the wire what its extension `wireName` says; else its own name in snake case.
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

/** Every root field of the schema that takes an `input` names what it refuses in the schema's words from now on. */
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
  // What a subscription resolves are its events, which were asked for long ago.
  if (subscribe)
    field.subscribe = renaming(subscribe, rename, (source) => renamingSource(source as AsyncIterableIterator<unknown>, rename));
  else if (resolve) field.resolve = renaming(resolve, rename, (value) => value);
}

function renaming(
  resolve: GraphQLFieldResolver<unknown, unknown>,
  rename: Rename,
  wrap: (value: unknown) => unknown,
): GraphQLFieldResolver<unknown, unknown> {
  return (...asked) => {
    try {
      const value = resolve(...asked);
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

/** The same error with the input's own names of what it names; anything that names nothing as it is. */
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

/** A message begins with the field that it is about, or tells of several one after the other. */
function renameInMessage(message: string, [path, name]: readonly [string, string]): string {
  return ` ${message}`.replaceAll(` ${path}: `, ` ${name}: `).slice(1);
}

/** `messages.0.tool_calls` as `messages.0.toolCalls`. What is no field of the input, but can stand in its `extra`, stands there. */
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

/** One name can be that of a list and that of a text: what follows it decides. An index alone is one of the only list that there is. */
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

/** The fields whose names on the wire are like no word of a sentence. */
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
