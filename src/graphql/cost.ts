/**
 * The cost of an operation (docs/decisions/graphql-cost.md): its fields, multiplied by page sizes; argument values that it passes
 * more than once; and its generations. Introspection is counted separately (introspection.ts).
 */
import {
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  getNullableType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  SchemaMetaFieldDef,
  type SelectionNode,
  type SelectionSetNode,
  TypeMetaFieldDef,
  type ValueNode,
} from "graphql";
import { UploadedFile } from "../http/uploads.js";
import { ownValue } from "../lib/own-values.js";
import type { Fragments } from "./documents/fragments.js";
import { GRAPHQL_GENERATION_COST, GRAPHQL_REPEATED_VALUES_PER_COST } from "./limits.js";
import { countGenerations } from "./plugins/use-idempotency.js";
import type { Values } from "./variables.js";

export interface CostedOperation {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly fragments: Fragments;
  /** Coerced variables. */
  readonly values: Values;
}

export interface Cost {
  readonly cost: number;
  readonly parts: number;
}

export function costOf(operation: CostedOperation): Cost {
  const counting = new Counting(operation);
  const { fields, parts, values } = counting.countOperation();
  const repeated = Math.floor(Math.max(0, values - counting.valuesOnce) / GRAPHQL_REPEATED_VALUES_PER_COST);
  const generations = countGenerations(operation.document, operation.operation) * GRAPHQL_GENERATION_COST;
  return { cost: fields + repeated + generations, parts };
}

/** The cost that a field states as `complexity` in the builder. */
interface StatedCost {
  readonly field?: number;
  readonly multiplier?: number;
}
type Stated = number | StatedCost | ((args: Values) => number | StatedCost) | undefined;
type AnyField = GraphQLField<unknown, unknown>;

const INCREMENTAL: ReadonlySet<string> = new Set(["defer", "stream"]);

/** Multiplier of a list without a stated size. */
const ITEMS_ASSUMED = 10;
/** Characters per value that a text counts as; at least one value. */
const CHARS_PER_VALUE = 64;

interface Sum {
  readonly fields: number;
  readonly parts: number;
  /** Values of arguments, counted each time they are passed. */
  readonly values: number;
}

const NOTHING: Sum = { fields: 0, parts: 0, values: 0 };

class Counting {
  /** Values of arguments, counted once. */
  valuesOnce = 0;
  readonly #known = new Map<SelectionSetNode, Map<GraphQLNamedType, Sum>>();
  readonly #variables = new Map<string, number>();

  constructor(private readonly operation: CostedOperation) {}

  countOperation(): Sum {
    const { schema, operation } = this.operation;
    const root = schema.getRootType(operation.operation);
    return root ? this.#ofSelections(operation.selectionSet, root) : NOTHING;
  }

  /** The same selection of the same type is counted once, however many fragments lead to it. */
  #ofSelections(selectionSet: SelectionSetNode, type: GraphQLNamedType): Sum {
    const known = this.#known.get(selectionSet)?.get(type);
    if (known) return known;
    let { fields, parts, values } = NOTHING;
    for (const selection of selectionSet.selections) {
      const sum = this.#ofSelection(selection, type);
      fields += sum.fields;
      parts += sum.parts;
      values += sum.values;
    }
    const sum = { fields, parts, values };
    const byType = this.#known.get(selectionSet) ?? new Map<GraphQLNamedType, Sum>();
    this.#known.set(selectionSet, byType.set(type, sum));
    return sum;
  }

  #ofSelection(selection: SelectionNode, type: GraphQLNamedType): Sum {
    if (selection.kind === Kind.FIELD) return this.#ofField(selection, type);
    const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : this.operation.fragments.get(selection.name.value);
    if (!fragment) return NOTHING;
    const { typeCondition, selectionSet } = fragment;
    const inside = this.#ofSelections(selectionSet, (typeCondition && this.operation.schema.getType(typeCondition.name.value)) ?? type);
    return isIncremental(selection.directives) ? { ...inside, parts: inside.parts + 1 } : inside;
  }

  #ofField(node: FieldNode, type: GraphQLNamedType): Sum {
    const field = fieldOf(type, node.name.value);
    const { own, times } = field ? this.#statedBy(field, node) : { own: 1, times: 1 };
    const inside = field && node.selectionSet ? this.#ofSelections(node.selectionSet, getNamedType(field.type)) : NOTHING;
    const streamed = isIncremental(node.directives) ? (node.selectionSet ? times : ITEMS_ASSUMED) : 0;
    const values = this.#valuesOf(node);
    return { fields: own + inside.fields * times, parts: streamed + inside.parts * times, values: values + inside.values * times };
  }

  #statedBy(field: AnyField, node: FieldNode): { readonly own: number; readonly times: number } {
    const assumed = isListType(getNullableType(field.type)) && !isOfSchema(field) ? ITEMS_ASSUMED : 1;
    const { complexity } = field.extensions as { readonly complexity?: Stated };
    const stated = typeof complexity === "function" ? this.#statedFor(complexity, field, node) : complexity;
    if (typeof stated === "number") return { own: stated, times: assumed };
    return { own: stated?.field ?? 1, times: Math.max(0, stated?.multiplier ?? assumed) };
  }

  #statedFor(complexity: Extract<Stated, (...args: never[]) => unknown>, field: AnyField, node: FieldNode): number | StatedCost {
    let args: Values;
    try {
      args = getArgumentValues(field, node, this.operation.values);
    } catch (error) {
      // A required argument is missing: the executor refuses the field.
      if (error instanceof GraphQLError) return 1;
      throw error;
    }
    return complexity(args);
  }

  #valuesOf({ arguments: given = [] }: FieldNode): number {
    let count = 0;
    for (const { value } of given) count += this.#valuesIn(value);
    return count;
  }

  #valuesIn(node: ValueNode): number {
    if (node.kind === Kind.VARIABLE) return this.#valuesOfVariable(node.name.value);
    let count = node.kind === Kind.STRING ? valuesOfText(node.value) : 1;
    this.valuesOnce += count;
    if (node.kind === Kind.LIST) for (const item of node.values) count += this.#valuesIn(item);
    if (node.kind === Kind.OBJECT) for (const { value } of node.fields) count += this.#valuesIn(value);
    return count;
  }

  #valuesOfVariable(name: string): number {
    const known = this.#variables.get(name);
    if (known !== undefined) return known;
    const count = countValues(ownValue(this.operation.values, name));
    this.#variables.set(name, count);
    this.valuesOnce += count;
    return count;
  }
}

function fieldOf(type: GraphQLNamedType, name: string): AnyField | undefined {
  if (!isObjectType(type) && !isInterfaceType(type)) return undefined;
  return ownValue(type.getFields(), name) ?? ROOT_META_FIELDS.get(name);
}

const ROOT_META_FIELDS: ReadonlyMap<string, AnyField> = new Map([SchemaMetaFieldDef, TypeMetaFieldDef].map((field) => [field.name, field]));

/** The result of introspection is counted elsewhere. Its fields count here as often as they are written. */
function isOfSchema(field: AnyField): boolean {
  return getNamedType(field.type).name.startsWith("__");
}

function isIncremental(directives: readonly DirectiveNode[] = []): boolean {
  return directives.some(({ name }) => INCREMENTAL.has(name.value));
}

function valuesOfText(text: string): number {
  return 1 + Math.floor(text.length / CHARS_PER_VALUE);
}

/** Counts all values in a coerced value, which is at most as deep as a request body. A file counts as one. */
function countValues(value: unknown): number {
  if (typeof value === "string") return valuesOfText(value);
  if (typeof value !== "object" || value === null || value instanceof UploadedFile) return 1;
  let count = 1;
  if (Array.isArray(value)) for (const item of value) count += countValues(item);
  else for (const item of Object.values(value)) count += countValues(item);
  return count;
}
